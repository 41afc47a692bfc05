package redact

// wordHint is what a nearby word suggests about a number.
type wordHint int

const (
	hintNone     wordHint = iota
	hintWeak              // "number": maybe
	hintPositive          // "call": yes
	hintNegative          // "order": no
)

const (
	nearWords = 6
	nearBytes = 64
	maxWord   = 20 // bytes of the longest word in a list
)

// hintBefore returns the hint of the nearest word before i with a positive or
// negative one, else a weak one. It stops at brackets, so that a placeholder
// has no influence.
func hintBefore(text string, i int, about func(word string) wordHint) wordHint {
	v, stop := hintNone, max(0, i-nearBytes)
	var word [maxWord]byte
	for range nearWords {
		for i > stop && !isWordByte(text[i-1]) {
			if b := text[i-1]; b == '[' || b == ']' {
				return v
			}
			i--
		}
		end := i
		for i > stop && isWordByte(text[i-1]) {
			i--
		}
		if end == i {
			break
		}
		switch w := about(lowerWord(word[:0], text[i:end])); w {
		case hintPositive, hintNegative:
			return w
		case hintWeak:
			v = hintWeak
		}
	}
	return v
}

// hintAfter returns the hint of the next word on the same line.
func hintAfter(text string, i int, about func(word string) wordHint) wordHint {
	stop := min(len(text), i+nearBytes)
	for i < stop && (text[i] == ' ' || text[i] == '-' || text[i] == '(' || text[i] == ',') {
		i++
	}
	start := i
	for i < stop && isWordByte(text[i]) {
		i++
	}
	var word [maxWord]byte
	return about(lowerWord(word[:0], text[start:i]))
}

// isWordByte also accepts non-ASCII bytes but not "_", so that user_phone is
// two words.
func isWordByte(b byte) bool { return isLetter(b) || isDigit(b) || b >= 0x80 }

// lowerWord returns the word with ASCII letters in lower case, or "" if it is
// too long. It uses buf to avoid an allocation.
func lowerWord(buf []byte, word string) string {
	if len(word) > cap(buf) {
		return ""
	}
	for i := range len(word) {
		b := word[i]
		if 'A' <= b && b <= 'Z' {
			b |= 0x20
		}
		buf = append(buf, b)
	}
	return string(buf)
}

package redact

// verdict is what a word says about the number behind it.
type verdict int

const (
	silent verdict = iota
	hints          // "number": of something
	says           // "call": this is one
	denies         // "order": this is another thing
)

const (
	nearWords = 6
	nearBytes = 64
	longest   = 20 // bytes of a word that is looked up
)

// near asks for the nearest of the few words before position i that says or
// denies; failing that, one that hints. It does not look past a bracket, so
// that a placeholder next to a number says what the end of the text does.
func near(text string, i int, about func(word string) verdict) verdict {
	v, stop := silent, max(0, i-nearBytes)
	var word [longest]byte
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
		switch w := about(lower(word[:0], text[i:end])); w {
		case says, denies:
			return w
		case hints:
			v = hints
		}
	}
	return v
}

// after asks for the word that follows on the same line.
func after(text string, i int, about func(word string) verdict) verdict {
	stop := min(len(text), i+nearBytes)
	for i < stop && (text[i] == ' ' || text[i] == '-' || text[i] == '(' || text[i] == ',') {
		i++
	}
	start := i
	for i < stop && isWordByte(text[i]) {
		i++
	}
	var word [longest]byte
	return about(lower(word[:0], text[start:i]))
}

// isWordByte also counts all that is not ASCII, and not "_": in user_phone two
// words count.
func isWordByte(b byte) bool { return isLetter(b) || isDigit(b) || b >= 0x80 }

// lower returns the word in lower case, as far as ASCII goes; "" for one that is
// too long. buf keeps it off the heap.
func lower(buf []byte, word string) string {
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

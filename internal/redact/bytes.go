package redact

// byteCounts summarizes the bytes of a text, so that most detectors can be
// skipped.
type byteCounts struct {
	digits, dots, colons int
	seen                 byteClass
}

// byteClass is a set of byte classes.
type byteClass uint8

const (
	classDigit byteClass = 1 << iota
	classDot
	classColon
	classAt      // "@"
	classBracket // "["
	classLetter
	classOther    // other ASCII
	classNonASCII // not ASCII
)

var byteClasses = buildByteClasses()

func buildByteClasses() (c [256]byteClass) {
	for i := range c {
		switch b := byte(i); {
		case b >= 0x80:
			c[i] = classNonASCII
		case isDigit(b):
			c[i] = classDigit
		case isLetter(b):
			c[i] = classLetter
		case b == '.':
			c[i] = classDot
		case b == ':':
			c[i] = classColon
		case b == '@':
			c[i] = classAt
		case b == '[':
			c[i] = classBracket
		default:
			c[i] = classOther
		}
	}
	return c
}

func countBytes(text string) byteCounts {
	var counts byteCounts
	for i := range len(text) {
		c := byteClasses[text[i]]
		counts.seen |= c
		counts.digits += int(c & classDigit)
		counts.dots += int(c & classDot >> 1)
		counts.colons += int(c & classColon >> 2)
	}
	return counts
}

func (c byteCounts) mayHaveEmail() bool       { return c.seen&classAt != 0 }
func (c byteCounts) mayHavePhone() bool       { return c.digits >= minPhoneDigits }
func (c byteCounts) mayHaveCard() bool        { return c.digits >= minCardDigits }
func (c byteCounts) mayHaveIBAN() bool        { return c.digits >= 2 && c.seen&classLetter != 0 }
func (c byteCounts) mayHaveNationalID() bool  { return c.digits >= 2 }
func (c byteCounts) mayHaveIP() bool          { return c.digits > 0 && (c.dots >= 3 || c.colons >= 2) }
func (c byteCounts) mayHaveSecret() bool      { return c.seen&(classLetter|classNonASCII) != 0 }
func (c byteCounts) mayHavePlaceholder() bool { return c.seen&classBracket != 0 && c.digits > 0 }

func isDigit(b byte) bool  { return b-'0' < 10 }
func isLetter(b byte) bool { return b|0x20-'a' < 26 }

// isWordOrDigit reports whether b continues an ASCII word or number. Non-ASCII
// letters do not, because many scripts put no space between words and numbers.
func isWordOrDigit(b byte) bool { return isDigit(b) || isLetter(b) || b == '_' }

// byteAt returns text[i], or a space outside the text.
func byteAt(text string, i int) byte {
	if i < 0 || i >= len(text) {
		return ' '
	}
	return text[i]
}

// nextDigit returns the position of the first digit at or after i, or
// len(text).
func nextDigit(text string, i int) int {
	for i < len(text) && !isDigit(text[i]) {
		i++
	}
	return i
}

// pastDigits returns the end of the digits at i.
func pastDigits(text string, i int) int {
	for i < len(text) && isDigit(text[i]) {
		i++
	}
	return i
}

// parseDecimal parses up to 18 digits.
func parseDecimal(digits string) int {
	n := 0
	for i := range len(digits) {
		n = n*10 + int(digits[i]-'0')
	}
	return n
}

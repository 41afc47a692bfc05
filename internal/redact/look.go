package redact

// looks is what one look at the bytes of a text saw: enough to pass over most
// kinds in most texts.
type looks struct {
	digits, dots, colons int
	seen                 class
}

// class is a set of kinds of bytes.
type class uint8

const (
	digit class = 1 << iota
	dot
	colon
	at      // "@"
	bracket // "["
	letter
	mark // any other of ASCII
	wide // not ASCII
)

var classes = classify()

func classify() (c [256]class) {
	for i := range c {
		switch b := byte(i); {
		case b >= 0x80:
			c[i] = wide
		case isDigit(b):
			c[i] = digit
		case isLetter(b):
			c[i] = letter
		case b == '.':
			c[i] = dot
		case b == ':':
			c[i] = colon
		case b == '@':
			c[i] = at
		case b == '[':
			c[i] = bracket
		default:
			c[i] = mark
		}
	}
	return c
}

func look(text string) looks {
	var l looks
	for i := range len(text) {
		c := classes[text[i]]
		l.seen |= c
		l.digits += int(c & digit)
		l.dots += int(c & dot >> 1)
		l.colons += int(c & colon >> 2)
	}
	return l
}

func (l looks) email() bool   { return l.seen&at != 0 }
func (l looks) phone() bool   { return l.digits >= minPhone }
func (l looks) card() bool    { return l.digits >= minCard }
func (l looks) iban() bool    { return l.digits >= 2 && l.seen&letter != 0 }
func (l looks) ip() bool      { return l.digits > 0 && (l.dots >= 3 || l.colons >= 2) }
func (l looks) secret() bool  { return l.seen&(letter|wide) != 0 }
func (l looks) literal() bool { return l.seen&bracket != 0 && l.digits > 0 }

func isDigit(b byte) bool  { return b-'0' < 10 }
func isLetter(b byte) bool { return b|0x20-'a' < 26 }

// isWord reports what goes on with a word or a number of ASCII. Other letters do
// not: in many scripts no blank stands between a word and a number.
func isWord(b byte) bool { return isDigit(b) || isLetter(b) || b == '_' }

// byteAt is text[i], and a blank outside the text.
func byteAt(text string, i int) byte {
	if i < 0 || i >= len(text) {
		return ' '
	}
	return text[i]
}

// nextDigit returns where the first digit at or after i stands, len(text) for
// none.
func nextDigit(text string, i int) int {
	for i < len(text) && !isDigit(text[i]) {
		i++
	}
	return i
}

// pastDigits returns where the digits at i end.
func pastDigits(text string, i int) int {
	for i < len(text) && isDigit(text[i]) {
		i++
	}
	return i
}

// valueOf reads the digits of a text of up to 18 of them.
func valueOf(digits string) int {
	n := 0
	for i := range len(digits) {
		n = n*10 + int(digits[i]-'0')
	}
	return n
}

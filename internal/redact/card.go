package redact

// The digits of a card number (ISO/IEC 7812).
const (
	minCard = 12
	maxCard = 19
)

// findCards appends the card numbers: 12 to 19 digits in one piece or in groups,
// the check digit right, of a network's numbers unless a word near says card.
func findCards(text string, found []span) []span {
	for i := nextDigit(text, 0); i < len(text); i = nextDigit(text, i) {
		if end := cardEnd(text, i); end > 0 {
			found = append(found, span{start: i, end: end})
			i = end
		} else {
			i = pastDigits(text, i)
		}
	}
	return found
}

// cardEnd returns where the longest card number that starts at i ends, 0 for none.
func cardEnd(text string, i int) int {
	before := byteAt(text, i-1)
	if isWord(before) || before == '+' || before == '.' && isDigit(byteAt(text, i-2)) {
		return 0
	}
	goesOn := (before == ' ' || before == '-') && isDigit(byteAt(text, i-2)) // digits stand before it
	var digits [maxCard]byte
	n, best, short := 0, 0, false
	for at := i; ; at++ {
		from := at
		for isDigit(byteAt(text, at)) {
			if n == maxCard {
				return best
			}
			digits[n] = text[at] - '0'
			n++
			at++
		}
		more := (byteAt(text, at) == ' ' || byteAt(text, at) == '-') && isDigit(byteAt(text, at+1))
		// Groups of one or two digits are a card spelled out, if nothing else
		// stands beside them; in a table of numbers they are no card.
		alone := !goesOn && !more
		if n >= minCard && (!short || alone) && endsNumber(text, at) && isCard(digits[:n], text, i) {
			best = at
		}
		if !more {
			return best
		}
		short = short || at-from < 3
	}
}

// endsNumber reports whether a number that ends at i is not the front of
// something else: a word, or digits behind a dot.
func endsNumber(text string, i int) bool {
	b := byteAt(text, i)
	return !isWord(b) && (b != '.' || !isDigit(byteAt(text, i+1)))
}

func isCard(digits []byte, text string, start int) bool {
	return luhn(digits) && (ofNetwork(digits) || near(text, start, cardWords) == says)
}

// luhn reports whether the last of the digits checks the others.
func luhn(digits []byte) bool {
	sum := 0
	for i, d := range digits {
		v := int(d)
		if (len(digits)-i)%2 == 0 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
	}
	return sum%10 == 0 && sum > 0
}

// ofNetwork reports whether a card network gives out such numbers. Without this
// a tenth of all order numbers and of all milliseconds since 1970 were cards.
func ofNetwork(d []byte) bool {
	n, two, four := len(d), int(d[0])*10+int(d[1]), 0
	for _, v := range d[:4] {
		four = four*10 + int(v)
	}
	switch d[0] {
	case 1: // UATP, and JCB's old 1800
		return n == 15
	case 2: // JCB's old 2131, Mir, Mastercard
		return n == 15 && (four == 2131 || four == 2014 || four == 2149) ||
			n >= 16 && 2200 <= four && four <= 2204 || n == 16 && 2221 <= four && four <= 2720
	case 3: // American Express, Diners Club, JCB
		return n == 15 && (two == 34 || two == 37) || n >= 14 && (two == 30 || two == 36 || two == 38 || two == 39) ||
			n >= 16 && two == 35
	case 4: // Visa
		return n == 13 || n == 16 || n == 19
	case 5: // Mastercard, Maestro
		return n == 16 || two == 50 || two >= 56 && two <= 58
	case 6: // Maestro, Discover, UnionPay, RuPay
		return true
	}
	return false
}

func cardWords(word string) verdict {
	switch word {
	case "card", "cards", "visa", "mastercard", "maestro", "amex", "credit", "debit", "cartão", "cartao", "tarjeta", "carte", "karte", "carta":
		return says
	}
	return silent
}

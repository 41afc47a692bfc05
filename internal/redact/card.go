package redact

// Digits of a card number (ISO/IEC 7812).
const (
	minCardDigits = 12
	maxCardDigits = 19
)

// findCards appends card numbers: 12 to 19 digits, grouped or not, with a
// correct check digit, and a known network prefix or a nearby word such as
// card.
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

// cardEnd returns the end of the longest card number that starts at i, or 0.
func cardEnd(text string, i int) int {
	before := byteAt(text, i-1)
	if isWordOrDigit(before) || before == '+' || before == '.' && isDigit(byteAt(text, i-2)) {
		return 0
	}
	goesOn := (before == ' ' || before == '-') && isDigit(byteAt(text, i-2)) // digits precede it
	var digits [maxCardDigits]byte
	n, best, short := 0, 0, false
	for at := i; ; at++ {
		from := at
		for isDigit(byteAt(text, at)) {
			if n == maxCardDigits {
				return best
			}
			digits[n] = text[at] - '0'
			n++
			at++
		}
		more := (byteAt(text, at) == ' ' || byteAt(text, at) == '-') && isDigit(byteAt(text, at+1))
		// Groups of one or two digits are a card number only if no other digits
		// are adjacent; otherwise they are a table.
		alone := !goesOn && !more
		if n >= minCardDigits && (!short || alone) && endsNumber(text, at) && isCard(digits[:n], text, i) {
			best = at
		}
		if !more {
			return best
		}
		short = short || at-from < 3
	}
}

// endsNumber reports whether a number that ends at i is complete: no word and
// no decimals follow.
func endsNumber(text string, i int) bool {
	b := byteAt(text, i)
	return !isWordOrDigit(b) && (b != '.' || !isDigit(byteAt(text, i+1)))
}

func isCard(digits []byte, text string, start int) bool {
	return checkLuhn(digits) && (isNetworkNumber(digits) || hintBefore(text, start, cardHint) == hintPositive)
}

// checkLuhn validates the check digit with the Luhn algorithm.
func checkLuhn(digits []byte) bool {
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

// isNetworkNumber reports whether a card network issues such numbers. Without
// this check, a tenth of all order numbers and timestamps would match.
func isNetworkNumber(d []byte) bool {
	n, two, four := len(d), int(d[0])*10+int(d[1]), 0
	for _, v := range d[:4] {
		four = four*10 + int(v)
	}
	switch d[0] {
	case 1: // UATP, old JCB 1800
		return n == 15
	case 2: // old JCB 2131, Mir, Mastercard
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

func cardHint(word string) wordHint {
	switch word {
	case "card", "cards", "visa", "mastercard", "maestro", "amex", "credit", "debit", "cartão", "cartao", "tarjeta", "carte", "karte", "carta":
		return hintPositive
	}
	return hintNone
}

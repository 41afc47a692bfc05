package redact

import "strings"

// National identifiers: CPF and CNPJ of Brazil, NIF of Portugal, DNI and NIE of
// Spain, and SSN of the United States.

// idFormat is one way to write an identifier: groups of digits between single
// separators, for a NIE after X, Y or Z, for a DNI and a NIE before a letter.
type idFormat struct {
	row            int
	shape          uint32 // sizes of the groups, one hexadecimal digit each
	prefix, letter bool
	// hinted formats have too little redundancy: they count only after a word for
	// the kind.
	hinted bool
}

var idFormats = [...]idFormat{
	{row: cpfRow, shape: 0x3332},
	{row: cpfRow, shape: 0x92},
	{row: cpfRow, shape: 0xb},
	{row: cnpjRow, shape: 0x23342},
	{row: cnpjRow, shape: 0x842},
	{row: cnpjRow, shape: 0xc2},
	{row: cnpjRow, shape: 0xe},
	{row: ssnRow, shape: 0x324},
	{row: ssnRow, shape: 0x36, hinted: true},
	{row: ssnRow, shape: 0x54, hinted: true},
	{row: ssnRow, shape: 0x9, hinted: true},
	{row: nifRow, shape: 0x333, hinted: true},
	{row: nifRow, shape: 0x9, hinted: true},
	{row: dniRow, shape: 0x8, letter: true},
	{row: dniRow, shape: 0x7, letter: true},
	{row: dniRow, shape: 0x233, letter: true},
	{row: dniRow, shape: 0x133, letter: true},
	{row: dniRow, shape: 0x7, prefix: true, letter: true},
	{row: dniRow, shape: 0x133, prefix: true, letter: true},
}

// Digits of an identifier.
const (
	minIDDigits = 7
	maxIDDigits = 14
	idLengths   = 1<<7 | 1<<8 | 1<<9 | 1<<11 | 1<<14
)

// idNumber is a number of up to five groups.
type idNumber struct {
	text       string
	start, end int
	digits     [maxIDDigits]byte
	n          int // digits
	shape      uint32
}

// findNationalIDs appends the identifiers of the kinds with a correct check digit
// or, for an SSN, in the assigned ranges.
func findNationalIDs(text string, of kindSet, found []span) []span {
	for i := nextDigit(text, 0); i < len(text); i = nextDigit(text, i) {
		end := pastDigits(text, i)
		if before := byteAt(text, i-1); end-i >= minIDDigits || isDigit(byteAt(text, end+1)) && isDigit(byteAt(text, end+2)) || before == '-' || isLetter(before) {
			if s, ok := nationalIDAt(text, i, of); ok {
				found = append(found, s)
				end = max(end, s.end)
			}
		}
		i = end
	}
	return found
}

// nationalIDAt returns the longest identifier whose first run of digits, or whose
// last one if it is an alphanumeric CNPJ, starts at i.
func nationalIDAt(text string, i int, of kindSet) (best span, ok bool) {
	if of.has(cnpjRow) {
		if s, ok := alphanumericCNPJ(text, i); ok {
			return s, true
		}
	}
	before, prefix := byteAt(text, i-1), false
	switch {
	case isLetter(before) && before|0x20 >= 'x' && !isWordOrDigit(byteAt(text, i-2)):
		prefix = true
	case before|0x20 == 't' && byteAt(text, i-2)|0x20 == 'p' && !isWordOrDigit(byteAt(text, i-3)): // PT123456789
	case before == '-' && byteAt(text, i-2)|0x20 >= 'x' && isLetter(byteAt(text, i-2)) && !isWordOrDigit(byteAt(text, i-3)):
		prefix = true
	case isWordOrDigit(before), before == '+', (before == '-' || before == '.' || before == ',') && isDigit(byteAt(text, i-2)):
		return span{}, false
	}
	number := idNumber{text: text, start: i}
	for at := i; number.readGroup(at); at = number.end + 1 {
		if idLengths&(1<<number.n) == 0 {
			continue
		}
		for _, f := range idFormats {
			if f.shape != number.shape || f.prefix != prefix || !of.has(f.row) {
				continue
			}
			if end := number.matchFormat(f); end > 0 {
				best, ok = span{start: i, end: end, row: f.row}, true
				if prefix {
					best.start = i - 1
					if before == '-' {
						best.start--
					}
				}
			}
		}
	}
	return best, ok
}

// readGroup appends the group of digits at i, which follows a separator unless it
// is the first one. It reports whether there is one that fits.
func (d *idNumber) readGroup(i int) bool {
	if d.n > 0 && (i > len(d.text) || strings.IndexByte(" .-/", byteAt(d.text, i-1)) < 0) {
		return false
	}
	end := pastDigits(d.text[:min(len(d.text), i+maxIDDigits+1)], min(i, len(d.text)))
	if end <= i || d.n+end-i > maxIDDigits || d.n > 0 && end-i < 2 || d.shape >= 1<<16 {
		return false
	}
	d.shape, d.end = d.shape<<4|uint32(end-i), end
	for ; i < end; i++ {
		d.digits[d.n] = d.text[i] - '0'
		d.n++
	}
	return true
}

// matchFormat returns the end of the number, if it is an identifier of the format, or
// 0.
func (d *idNumber) matchFormat(f idFormat) int {
	end, letter := d.end, byte(0)
	if f.letter {
		if b := byteAt(d.text, end); b == '-' || b == ' ' && d.shape > 0xf {
			end++
		}
		letter = byteAt(d.text, end)
		end++
	}
	if next := byteAt(d.text, end); !endsNumber(d.text, end) || (next == '-' || next == '/' || next == ' ' && d.shape == 0x324) && isDigit(byteAt(d.text, end+1)) {
		return 0
	}
	digits := d.digits[:d.n]
	var valid bool
	switch f.row {
	case cpfRow:
		valid = !isRepeated(digits) && mod11(digits[:9], 10) == digits[9] && mod11(digits[:10], 10) == digits[10]
	case cnpjRow:
		valid = isCNPJ(digits)
	case nifRow:
		valid = digits[0] > 0 && !isRepeated(digits) && mod11(digits[:8], 8) == digits[8]
	case ssnRow:
		sameSeparator := d.shape != 0x324 || d.text[d.start+3] == d.text[d.start+6]
		valid = sameSeparator && isSSN(digits)
	case dniRow:
		n := 0
		if f.prefix {
			n = int(d.text[d.start-1]|0x20) - 'x'
			if d.text[d.start-1] == '-' {
				n = int(d.text[d.start-2]|0x20) - 'x'
			}
		}
		for _, digit := range digits {
			n = n*10 + int(digit)
		}
		valid = letter&^0x20 == "TRWAGMYFPDXBNJZSQVHLCKE"[n%23] && isLetter(letter)
	}
	if !valid || !d.hasContext(f) {
		return 0
	}
	return end
}

// hasContext reports whether the words beside the number permit the format: a word for
// the kind, if it is hinted, and no word for other numbers, if accidental matches of
// the check are frequent.
func (d *idNumber) hasContext(f idFormat) bool {
	about := nifHint
	switch {
	case f.row == cpfRow, f.row == cnpjRow:
		return true
	case f.row == ssnRow:
		about = ssnHint
	case f.row == dniRow:
		about = dniHint
	case byteAt(d.text, d.start-1)|0x20 == 't': // PT123456789
		return true
	}
	before := hintBefore(d.text, d.start, about)
	if !f.hinted {
		return before != hintNegative
	}
	return before == hintPositive || hintAfter(d.text, d.end, about) == hintPositive
}

func nifHint(word string) wordHint {
	switch word {
	case "nif", "nipc", "contribuinte", "fiscal", "tributário", "tributario", "tax", "taxpayer", "vat", "tin", "iva":
		return hintPositive
	}
	return hintNone
}

func ssnHint(word string) wordHint {
	switch word {
	case "ssn", "ssns", "social":
		return hintPositive
	}
	return otherNumberHint(word)
}

func dniHint(word string) wordHint {
	switch word {
	case "dni", "nie", "nif":
		return hintPositive
	}
	return otherNumberHint(word)
}

// otherNumberHint returns hintNegative for words of numbers that are no identifiers.
func otherNumberHint(word string) wordHint {
	switch word {
	case "order", "orders", "ticket", "invoice", "part", "serial", "sku", "model", "lot", "batch", "tracking", "isbn", "version", "commit", "build", "product",
		"pedido", "fatura", "factura", "modelo", "lote", "producto", "produto":
		return hintNegative
	}
	return hintNone
}

// mod11 returns the check digit of values, whose weights from the right are 2, 3 and
// so on, in a cycle.
func mod11(values []byte, cycle int) byte {
	sum := 0
	for k := range values {
		sum += int(values[len(values)-1-k]) * (2 + k%cycle)
	}
	if rest := sum % 11; rest >= 2 {
		return byte(11 - rest)
	}
	return 0
}

func isRepeated(digits []byte) bool {
	for _, d := range digits {
		if d != digits[0] {
			return false
		}
	}
	return true
}

// isSSN excludes numbers that are never assigned, and those of advertisements.
func isSSN(d []byte) bool {
	area, serial := int(d[0])*100+int(d[1])*10+int(d[2]), 0
	for _, v := range d[5:] {
		serial = serial*10 + int(v)
	}
	group := int(d[3])*10 + int(d[4])
	switch {
	case area == 0, area == 666, area >= 900, group == 0, serial == 0:
		return false
	case area == 123 && group == 45 && serial == 6789, area == 78 && group == 5 && serial == 1120, area == 219 && group == 9 && serial == 9999:
		return false
	}
	return true
}

// isCNPJ validates the check digits. Since 2026 the first 12 characters may be
// letters, whose value is that of the ASCII code minus 48.
func isCNPJ(values []byte) bool {
	return !isRepeated(values) && mod11(values[:12], 8) == values[12] && mod11(values[:13], 8) == values[13]
}

// alphanumericCNPJ returns the CNPJ with letters whose last two digits start at i or,
// without separators, end the run at i: 12.ABC.345/01DE-35.
func alphanumericCNPJ(text string, i int) (span, bool) {
	const layout = "??.???.???/????-"
	start, end := i-len(layout), i+2
	plain := isLetter(byteAt(text, i-1))
	if plain {
		end = pastDigits(text, i)
		start = end - maxIDDigits
	} else if byteAt(text, i-1) != '-' || byteAt(text, i-6) != '/' || !isDigit(byteAt(text, i+1)) {
		return span{}, false
	}
	if start < 0 || !endsNumber(text, end) || isWordOrDigit(byteAt(text, start-1)) {
		return span{}, false
	}
	var values [maxIDDigits]byte
	n := 0
	for k := start; k < end; k++ {
		b := text[k]
		switch {
		case !plain && k < i && layout[k-start] != '?':
			if b != layout[k-start] {
				return span{}, false
			}
		case isLetter(b):
			values[n] = b&^0x20 - '0'
			n++
		case isDigit(b):
			values[n] = b - '0'
			n++
		default:
			return span{}, false
		}
	}
	if n < maxIDDigits || values[12] > 9 || !isCNPJ(values[:]) || plain && hintBefore(text, start, cnpjHint) != hintPositive {
		return span{}, false
	}
	return span{start: start, end: end, row: cnpjRow}, true
}

func cnpjHint(word string) wordHint {
	if word == "cnpj" {
		return hintPositive
	}
	return hintNone
}

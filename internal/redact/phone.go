package redact

import "strings"

// Digits of a phone number: seven for a local call, at most 15 (E.164).
const (
	minPhoneDigits = 7
	maxPhoneDigits = 15
)

// findPhones appends phone numbers. A country code, a trunk 0 or a common
// grouping identifies one; other digits count only if a nearby word indicates a
// phone number.
func findPhones(text string, found []span) []span {
	for i := 0; i < len(text); {
		if b := text[i]; !isDigit(b) && b != '+' && b != '(' {
			i++
			continue
		}
		if end := phoneEnd(text, i); end > 0 {
			found = append(found, span{start: i, end: end})
			i = end
			continue
		}
		i = max(i+1, pastDigits(text, i))
	}
	return found
}

// digitGroups are the groups of digits of a potential phone number.
type digitGroups struct {
	plus, area bool // starts with "+"; one of the first groups in parentheses
	n, digits  int
	groups     [8]span
}

// phoneCandidate is the first n groups of digits.
type phoneCandidate struct {
	*digitGroups
	text      string
	n, digits int
	shape     int  // group sizes as decimal digits, for example 334
	dashes    bool // "-" between the last two groups
	dots      bool // "." between any groups
}

// phoneEnd returns the end of the phone number that starts at i, or 0.
func phoneEnd(text string, i int) int {
	if !opensNumber(text, i) {
		return 0
	}
	full := readGroups(text, i)
	if full.digits < minPhoneDigits {
		return 0
	}
	if end := full.longestNumber(text, hintNone); end > 0 {
		return pastExtension(text, end)
	}
	if byteAt(text, i-1) == ',' && isDigit(byteAt(text, i-2)) {
		return 0 // part of a longer number or a list
	}
	context := phoneContext(text, i, full.groups[full.n-1].end)
	if context == hintNone || context == hintNegative {
		return 0
	}
	if end := full.longestNumber(text, context); end > 0 {
		return pastExtension(text, end)
	}
	return 0
}

// longestNumber returns the end of the longest candidate that is a phone number
// by itself or because of the context, or 0.
func (d *digitGroups) longestNumber(text string, context wordHint) int {
	for n := d.n; n > 0; n-- {
		p := d.firstGroups(text, n)
		if p.digits < minPhoneDigits {
			break
		}
		end := p.groups[n-1].end
		if (endsNumber(text, end) || hasExtension(text, end)) && !continuesAfter(text, end, context) && (p.isUnambiguous() || context != hintNone && p.isLikely(context)) {
			return end
		}
	}
	return 0
}

// opensNumber reports whether a number may start at i, and not inside a word,
// price, decimal number, range or path.
func opensNumber(text string, i int) bool {
	switch before := byteAt(text, i-1); before {
	case '+', '#', '$', '/', '\\', '%', '^', '*':
		return before == '/' && (text[i] == '+' || strings.HasSuffix(text[:i], "wa.me/"))
	case '-', '.', '(':
		b := byteAt(text, i-2)
		return !isWordOrDigit(b) && b != ')'
	default:
		return !isWordOrDigit(before)
	}
}

// continuesAfter reports whether the digits that end at i continue after a dash
// or dot, or are part of an expression. Without context, a comma or slash
// separates list items.
func continuesAfter(text string, i int, context wordHint) bool {
	switch byteAt(text, i) {
	case ',', '/', ':':
		return context != hintNone && isDigit(byteAt(text, i+1))
	case '-', '.', '_':
		next := byteAt(text, i+1)
		return isDigit(next) || isHex(next) && isHex(byteAt(text, i+2)) && !isWordOrDigit(byteAt(text, i+3)) // 01-23-45-67-89-AB
	case '%', '*', '^', '+', '=':
		return true
	}
	return false
}

// readGroups reads groups of digits up to the maximum of a phone number.
func readGroups(text string, i int) digitGroups {
	var d digitGroups
	if text[i] == '+' {
		d.plus = true
		i++
	}
	for d.n < len(d.groups) {
		open := byteAt(text, i) == '('
		if open {
			i++
		}
		end := pastDigits(text, i)
		if end == i || d.digits+end-i > maxPhoneDigits {
			break
		}
		if open && (byteAt(text, end) != ')' || end-i > 5) {
			break
		}
		d.groups[d.n] = span{start: i, end: end}
		d.n++
		d.digits += end - i
		i = end
		if open {
			i++
			d.area = d.area || d.n <= 2
		}
		i = pastSeparator(text, i)
		if b := byteAt(text, i); !isDigit(b) && b != '(' {
			break
		}
	}
	return d
}

// pastSeparator skips the separator between two groups: a space, dash, dot or
// slash, two of them, or none.
func pastSeparator(text string, i int) int {
	for range 2 {
		if b := byteAt(text, i); i < len(text) && (b == ' ' || b == '-' || b == '.' || b == '/') {
			i++
		}
	}
	return i
}

// firstGroups returns the candidate of the first n groups.
func (d *digitGroups) firstGroups(text string, n int) phoneCandidate {
	p := phoneCandidate{digitGroups: d, text: text, n: n}
	for _, g := range d.groups[:n] {
		p.digits += g.len()
		p.shape = p.shape*10 + min(g.len(), 9)
	}
	if n > 1 {
		p.dashes = text[d.groups[n-1].start-1] == '-'
		for i := range n - 1 {
			p.dots = p.dots || text[d.groups[i].end] == '.'
		}
	}
	return p
}

// isUnambiguous reports whether the candidate is a phone number without
// context.
func (p phoneCandidate) isUnambiguous() bool {
	head := p.groupText(0)
	switch {
	case p.plus:
		return head[0] != '0' && (p.n == 1 || p.groups[0].len() <= 4 || p.groups[0].len() < 10 && p.digits >= 10)
	case p.isDate():
		return false
	case p.area:
		return p.digits >= 8 && p.n >= 2 && p.n <= 5
	case len(head) > 2 && head[:2] == "00" && head[2] != '0':
		return p.digits >= 10 && p.n > 1 && len(head) <= 5
	case head[0] == '0' && (len(head) == 1 || head[1] != '0'):
		return p.n == 1 && (p.digits == 10 || p.digits == 11) ||
			p.n > 1 && len(head) <= 5 && p.groups[1].len() > 1 && p.digits >= 9 && p.digits <= 12 && p.shape != 324 // 012-34-5678 is a US social security number
	}
	switch p.shape {
	case 334:
		return head[0] >= '2'
	case 344: // Chinese mobile number
		return head[0] == '1' && head[1] >= '3'
	case 1334:
		return head[0] == '1'
	case 2334:
		return true
	case 244, 254:
		return p.dashes && head[0] != '0'
	case 3322, 2322:
		return !p.dots && head[0] >= '2' || p.shape == 3322 && p.dots && head > "255"
	}
	return false
}

// isLikely reports whether the candidate is a phone number in this context.
func (p phoneCandidate) isLikely(context wordHint) bool {
	if p.isDate() {
		return false
	}
	head := p.groupText(0)
	if context == hintPositive {
		return p.n > 1 || p.digits <= 13 && !strings.HasSuffix(head, "0000") // as in "call it with 1000000"
	}
	switch {
	case p.n > 1:
		return false
	case head[:2] == "00":
		return p.digits >= 12 && p.digits <= 14
	}
	return p.digits == 10 && head[0] >= '2' || p.digits == 11 && head[0] == '1' && head[1] >= '3'
}

// isDate reports whether the groups are a date, with or without a time:
// 2024-01-15, 15.01.2024 10.
func (p phoneCandidate) isDate() bool {
	if p.n < 3 || p.area {
		return false
	}
	a, b, c := p.groupText(0), p.groupText(1), p.groupText(2)
	switch {
	case len(a) == 4 && len(b) <= 2 && len(c) <= 2:
		return 1900 <= parseDecimal(a) && parseDecimal(a) < 2100 && parseDecimal(b) <= 12 && parseDecimal(c) <= 31
	case len(a) <= 2 && len(b) <= 2 && len(c) == 4:
		return min(parseDecimal(a), parseDecimal(b)) <= 12 && max(parseDecimal(a), parseDecimal(b)) <= 31 && 1900 <= parseDecimal(c) && parseDecimal(c) < 2100
	}
	return false
}

func (p phoneCandidate) groupText(i int) string { return p.text[p.groups[i].start:p.groups[i].end] }

// hasExtension reports whether an extension follows directly at i: x4587.
func hasExtension(text string, i int) bool {
	return byteAt(text, i)|0x20 == 'x' && isDigit(byteAt(text, i+1))
}

// pastExtension returns the end of an extension after a number: x4587, ext. 12.
func pastExtension(text string, i int) int {
	at := i
	for byteAt(text, at) == ' ' && at < len(text) && at < i+2 {
		at++
	}
	word := at
	for at < len(text) && at < word+9 && (isLetter(text[at]) || text[at] == '#') {
		at++
	}
	var buf [maxWord]byte
	switch lowerWord(buf[:0], text[word:at]) {
	case "x", "ext", "extension", "ramal", "#":
	default:
		return i
	}
	for k := 0; k < 2 && (byteAt(text, at) == ' ' && at < len(text) || byteAt(text, at) == '.'); k++ {
		at++
	}
	end := pastDigits(text, at)
	if n := end - at; n == 0 || n > 6 || isWordOrDigit(byteAt(text, end)) {
		return i
	}
	return end
}

// phoneContext combines the hints before and after a number.
func phoneContext(text string, start, end int) wordHint {
	before := hintBefore(text, start, phoneHint)
	if before != hintPositive && before != hintNegative && hintAfter(text, end, phoneHint) == hintPositive {
		return hintPositive
	}
	return before
}

func phoneHint(word string) wordHint {
	switch word {
	case "phone", "phones", "tel", "telephone", "telephones", "mobile", "cell", "cellphone", "fax", "call", "calls", "calling", "called", "dial", "ring",
		"whatsapp", "wa", "sms", "text", "texts", "texted", "message", "messages", "messaging", "answering", "hotline", "desk", "office", "landline", "voicemail", "reach", "callback",
		"telefone", "fone", "celular", "ligar", "ligue", "zap", "teléfono", "telefono", "móvil", "movil", "llame", "llamar", "llámame",
		"téléphone", "portable", "appeler", "telefon", "telefonnummer", "handy", "handynummer", "rufnummer", "cep", "telepono", "numara", "numaram",
		"电话", "手机", "電話", "携帯", "微信":
		return hintPositive
	case "number", "numbers", "no", "num", "numero", "número", "numéro", "nummer", "contact", "contato", "contacto":
		return hintWeak
	case "order", "orders", "invoice", "ticket", "case", "account", "id", "ids", "ref", "reference", "isbn", "issn", "sku", "serial", "part",
		"tracking", "version", "issue", "bug", "pr", "commit", "build", "function", "method", "items", "records", "users", "tokens", "port", "pid", "line", "lines", "row", "rows", "size", "bytes", "timestamp", "epoch",
		"amount", "price", "total", "cost", "population", "pedido", "fatura", "conta", "protocolo", "zip", "iban", "card", "customer", "policy", "batch", "lot", "model", "ssn", "passport":
		return hintNegative
	}
	return hintNone
}

package redact

import "strings"

// The digits of a phone number: seven for a call next door, 15 at most (E.164).
const (
	minPhone = 7
	maxPhone = 15
)

// findPhones appends the phone numbers. A country's code, a trunk 0 or a usual
// grouping shows one; other digits are one only where a word near says so.
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

// dialled is how the digits of what could be a phone number are grouped.
type dialled struct {
	plus, area bool // starts with "+"; one of the first groups is in parentheses
	n, digits  int
	groups     [8]span
}

// number is the first groups of what was dialled.
type number struct {
	*dialled
	text      string
	n, digits int
	shape     int  // sizes of the groups as decimals: 334
	dashes    bool // "-" stands between the last two groups
	dots      bool // "." stands somewhere
}

// phoneEnd returns where the phone number that starts at i ends, 0 for none.
func phoneEnd(text string, i int) int {
	if !opensNumber(text, i) {
		return 0
	}
	full := dial(text, i)
	if full.digits < minPhone {
		return 0
	}
	if end := full.longest(text, silent); end > 0 {
		return pastExtension(text, end)
	}
	if byteAt(text, i-1) == ',' && isDigit(byteAt(text, i-2)) {
		return 0 // of a longer number, or of a list
	}
	context := phoneContext(text, i, full.groups[full.n-1].end)
	if context == silent || context == denies {
		return 0
	}
	if end := full.longest(text, context); end > 0 {
		return pastExtension(text, end)
	}
	return 0
}

// longest returns where the most groups that are a number end, 0 for none. It is
// one by itself, or by what the words near say.
func (d *dialled) longest(text string, context verdict) int {
	for n := d.n; n > 0; n-- {
		p := d.first(text, n)
		if p.digits < minPhone {
			break
		}
		end := p.groups[n-1].end
		if (endsNumber(text, end) || extended(text, end)) && !cutShort(text, end, context) && (p.plain() || context != silent && p.likely(context)) {
			return end
		}
	}
	return 0
}

// opensNumber reports whether a number may start at i: not inside a word, a
// price, a decimal, a range or a path.
func opensNumber(text string, i int) bool {
	switch before := byteAt(text, i-1); before {
	case '+', '#', '$', '/', '\\', '%', '^', '*':
		return before == '/' && (text[i] == '+' || strings.HasSuffix(text[:i], "wa.me/"))
	case '-', '.', '(':
		b := byteAt(text, i-2)
		return !isWord(b) && b != ')'
	default:
		return !isWord(before)
	}
}

// cutShort reports whether digits that end at i go on behind a dash or a dot, or
// are a part of a sum. Where only the words near make a number of them, they may
// go on in more ways; else what follows is the next of a list.
func cutShort(text string, i int, context verdict) bool {
	switch byteAt(text, i) {
	case ',', '/', ':':
		return context != silent && isDigit(byteAt(text, i+1))
	case '-', '.', '_':
		next := byteAt(text, i+1)
		return isDigit(next) || isHex(next) && isHex(byteAt(text, i+2)) && !isWord(byteAt(text, i+3)) // 01-23-45-67-89-AB
	case '%', '*', '^', '+', '=':
		return true
	}
	return false
}

// dial reads groups of digits, as many as may belong to one number.
func dial(text string, i int) dialled {
	var d dialled
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
		if end == i || d.digits+end-i > maxPhone {
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

// pastSeparator passes over what stands between two groups: nothing behind a
// parenthesis, a blank, a dash, a dot, a slash, or a blank and one of these.
func pastSeparator(text string, i int) int {
	for range 2 {
		if b := byteAt(text, i); i < len(text) && (b == ' ' || b == '-' || b == '.' || b == '/') {
			i++
		}
	}
	return i
}

// first returns what the first n groups are.
func (d *dialled) first(text string, n int) number {
	p := number{dialled: d, text: text, n: n}
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

// plain reports a number that shows by itself to be one for a phone.
func (d number) plain() bool {
	head := d.group(0)
	switch {
	case d.plus:
		return head[0] != '0' && (d.n == 1 || d.groups[0].len() <= 4 || d.groups[0].len() < 10 && d.digits >= 10)
	case d.date():
		return false
	case d.area:
		return d.digits >= 8 && d.n >= 2 && d.n <= 5
	case len(head) > 2 && head[:2] == "00" && head[2] != '0':
		return d.digits >= 10 && d.n > 1 && len(head) <= 5
	case head[0] == '0' && (len(head) == 1 || head[1] != '0'):
		return d.n == 1 && (d.digits == 10 || d.digits == 11) ||
			d.n > 1 && len(head) <= 5 && d.groups[1].len() > 1 && d.digits >= 9 && d.digits <= 12 && d.shape != 324 // 012-34-5678 is another thing
	}
	switch d.shape {
	case 334:
		return head[0] >= '2'
	case 344: // China's mobiles
		return head[0] == '1' && head[1] >= '3'
	case 1334:
		return head[0] == '1'
	case 2334:
		return true
	case 244, 254:
		return d.dashes && head[0] != '0'
	case 3322, 2322:
		return !d.dots && head[0] >= '2' || d.shape == 3322 && d.dots && head > "255"
	}
	return false
}

// likely reports a number that is one if the words near are to be believed.
func (d number) likely(context verdict) bool {
	if d.date() {
		return false
	}
	head := d.group(0)
	if context == says {
		return d.n > 1 || d.digits <= 13 && !strings.HasSuffix(head, "0000") // as in "call it with 1000000"
	}
	switch {
	case d.n > 1:
		return false
	case head[:2] == "00":
		return d.digits >= 12 && d.digits <= 14
	}
	return d.digits == 10 && head[0] >= '2' || d.digits == 11 && head[0] == '1' && head[1] >= '3'
}

// date reports a day, with or without a time: 2024-01-15, 15.01.2024 10.
func (d number) date() bool {
	if d.n < 3 || d.area {
		return false
	}
	a, b, c := d.group(0), d.group(1), d.group(2)
	switch {
	case len(a) == 4 && len(b) <= 2 && len(c) <= 2:
		return 1900 <= valueOf(a) && valueOf(a) < 2100 && valueOf(b) <= 12 && valueOf(c) <= 31
	case len(a) <= 2 && len(b) <= 2 && len(c) == 4:
		return min(valueOf(a), valueOf(b)) <= 12 && max(valueOf(a), valueOf(b)) <= 31 && 1900 <= valueOf(c) && valueOf(c) < 2100
	}
	return false
}

func (d number) group(i int) string { return d.text[d.groups[i].start:d.groups[i].end] }

// extended reports an extension directly behind the digits that end at i: x4587.
func extended(text string, i int) bool {
	return byteAt(text, i)|0x20 == 'x' && isDigit(byteAt(text, i+1))
}

// pastExtension returns where an extension behind a number ends: x4587, ext. 12.
func pastExtension(text string, i int) int {
	at := i
	for byteAt(text, at) == ' ' && at < len(text) && at < i+2 {
		at++
	}
	word := at
	for at < len(text) && at < word+9 && (isLetter(text[at]) || text[at] == '#') {
		at++
	}
	var buf [longest]byte
	switch lower(buf[:0], text[word:at]) {
	case "x", "ext", "extension", "ramal", "#":
	default:
		return i
	}
	for k := 0; k < 2 && (byteAt(text, at) == ' ' && at < len(text) || byteAt(text, at) == '.'); k++ {
		at++
	}
	end := pastDigits(text, at)
	if n := end - at; n == 0 || n > 6 || isWord(byteAt(text, end)) {
		return i
	}
	return end
}

// phoneContext weighs the words before and behind a number.
func phoneContext(text string, start, end int) verdict {
	before := near(text, start, phoneWords)
	if before != says && before != denies && after(text, end, phoneWords) == says {
		return says
	}
	return before
}

func phoneWords(word string) verdict {
	switch word {
	case "phone", "phones", "tel", "telephone", "telephones", "mobile", "cell", "cellphone", "fax", "call", "calls", "calling", "called", "dial", "ring",
		"whatsapp", "wa", "sms", "text", "texts", "texted", "message", "messages", "messaging", "answering", "hotline", "desk", "office", "landline", "voicemail", "reach", "callback",
		"telefone", "fone", "celular", "ligar", "ligue", "zap", "teléfono", "telefono", "móvil", "movil", "llame", "llamar", "llámame",
		"téléphone", "portable", "appeler", "telefon", "telefonnummer", "handy", "handynummer", "rufnummer", "cep", "telepono", "numara", "numaram",
		"电话", "手机", "電話", "携帯", "微信":
		return says
	case "number", "numbers", "no", "num", "numero", "número", "numéro", "nummer", "contact", "contato", "contacto":
		return hints
	case "order", "orders", "invoice", "ticket", "case", "account", "id", "ids", "ref", "reference", "isbn", "issn", "sku", "serial", "part",
		"tracking", "version", "issue", "bug", "pr", "commit", "build", "function", "method", "items", "records", "users", "tokens", "port", "pid", "line", "lines", "row", "rows", "size", "bytes", "timestamp", "epoch",
		"amount", "price", "total", "cost", "population", "pedido", "fatura", "conta", "protocolo", "zip", "iban", "card", "customer", "policy", "batch", "lot", "model", "ssn", "passport":
		return denies
	}
	return silent
}

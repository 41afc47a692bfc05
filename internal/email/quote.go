package email

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// skipSeparator removes a line such as "----- Original Message -----". The lines
// below it are a message of another sender or, if there are none above it, the mail itself.
func (p *parser) skipSeparator() bool {
	kind := separatorOf(p.lines[p.at])
	if kind == noSeparator {
		return false
	}
	p.drop(p.at + 1)
	p.section = inBody
	if p.isEmpty() {
		p.skipHeaders()
		return true
	}
	p.dropRest(kind == forwardSeparator || p.refersToQuote())
	return true
}

// dropRest removes the rest of the mail. refers reports whether the body refers to it.
func (p *parser) dropRest(refers bool) {
	if refers && !p.isReference {
		rest := parser{lines: p.lines[p.at:], isReference: true}
		rest.skipHeaders()
		rest.parseLines()
		p.reference = append(p.reference, rest.body...)
	}
	p.drop(len(p.lines))
}

type separator int

const (
	noSeparator separator = iota
	originalSeparator
	forwardSeparator
)

// maxSeparator bounds the bytes of a separator.
const maxSeparator = 120

func separatorOf(line string) separator {
	if len(line) > maxSeparator {
		return noSeparator
	}
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "--") && !strings.HasSuffix(line, ":") && !strings.HasSuffix(line, "：") {
		return noSeparator
	}
	text := fold(strings.Trim(line, "-_=* \t:："))
	switch {
	case separators.original[text]:
		return originalSeparator
	case separators.forward[text]:
		return forwardSeparator
	}
	return noSeparator
}

// maxAttribution bounds the bytes of an attribution, and maxAttributionLines its lines: clients wrap it.
const (
	maxAttribution      = 250
	maxAttributionLines = 3
)

// skipAttribution removes a line such as "On Monday, Ana wrote:" with the quote that follows. If
// the quote has no markers, the attribution must have an address or a time, and the rest of the
// mail is the quote.
func (p *parser) skipAttribution() bool {
	lines, sure := p.attribution()
	if lines == 0 {
		return false
	}
	begin := p.skipBlank(p.at + lines)
	refers := p.refersToQuote()
	p.isReply = true
	switch {
	case begin < len(p.lines) && isQuoted(p.lines[begin]):
		p.section = inBody
		p.drop(begin)
		p.dropQuote(refers)
	case sure:
		p.drop(begin)
		p.dropRest(refers)
	default:
		return false
	}
	return true
}

// attribution returns the number of lines of the attribution at the current line, 0 if there is
// none, and whether it has an address or a time.
func (p *parser) attribution() (lines int, sure bool) {
	first, _, _ := strings.Cut(strings.TrimSpace(p.lines[p.at]), " ")
	begins := attributionStarts[fold(cut(first, maxWord))] || strings.HasPrefix(first, "在")
	for size := 0; p.at+lines < len(p.lines) && lines < maxAttributionLines; {
		line := p.lines[p.at+lines]
		lines++
		if size += len(line); size > maxAttribution || line == "" || isQuoted(line) {
			return 0, false
		}
		if endsInWrote(line) {
			text := strings.Join(p.lines[p.at:p.at+lines], " ")
			address := strings.Contains(text, "@") || strings.Contains(text, "<") || strings.Contains(text, "[EMAIL")
			digit := strings.IndexFunc(text, unicode.IsDigit)
			if !address && (digit < 0 || !begins && digit > 0) {
				return 0, false
			}
			return lines, address || containsTime(text)
		}
		if p.isForeignAttribution(p.at + lines - 1) {
			return lines, true
		}
		if !begins {
			return 0, false
		}
	}
	return 0, false
}

// isForeignAttribution reports whether a line ends in a colon, has an address in angle brackets, and
// is before quoted lines. Such a line names their author, in any language.
func (p *parser) isForeignAttribution(at int) bool {
	line := p.lines[at]
	ends := strings.HasSuffix(line, ":") || strings.HasSuffix(line, "：")
	if !ends || !strings.Contains(line, "<") || !strings.Contains(line, "@") && !strings.Contains(line, "[EMAIL") {
		return false
	}
	next := p.skipBlank(at + 1)
	return next < len(p.lines) && isQuoted(p.lines[next])
}

func endsInWrote(line string) bool {
	text := strings.TrimRight(line, ":： ")
	if text == line {
		return false
	}
	_, last := cutLastWord(text)
	return attributionVerbs[fold(cut(last, maxWord))] || simplify(text[max(0, len(text)-len("写道")):]) == "写道"
}

// cutLastWord cuts a text before its last word.
func cutLastWord(text string) (before, word string) {
	i := strings.LastIndexAny(text, " \t")
	return text[:i+1], text[i+1:]
}

// containsTime reports whether the text contains a time of day, such as 10:12.
func containsTime(text string) bool {
	for i := 1; i+2 < len(text); i++ {
		if text[i] == ':' && isDigit(text[i-1]) && isDigit(text[i+1]) && isDigit(text[i+2]) {
			return true
		}
	}
	return false
}

// skipQuote removes lines that begin with ">". Without an attribution they are a quote all the
// same: "Done, thanks!" above "> please cancel my booking" asks for nothing.
func (p *parser) skipQuote() bool {
	if !isQuoted(p.lines[p.at]) {
		return false
	}
	p.section = inBody
	p.isQuoting = true
	p.dropQuote(p.refersToQuote() || containsWord(p.lastLine(), placeWords))
	return true
}

// dropQuote removes the quoted lines from the current one on.
func (p *parser) dropQuote(refers bool) {
	end := p.at
	for next := end; next < len(p.lines) && isQuoted(p.lines[next]); next = p.skipBlank(end) {
		line := strings.TrimLeft(p.lines[next], "> ")
		if refers {
			p.reference = append(p.reference, line)
		} else {
			p.quote = append(p.quote, line)
		}
		end = next + 1
	}
	p.drop(end)
}

// refersToQuoteAbove reports whether the body points to a quote that is before it.
func (p *parser) refersToQuoteAbove() bool {
	return slices.ContainsFunc(p.body[:min(len(p.body), maxPointerLines)], func(line string) bool {
		line = cut(line, maxSignatureLine)
		return containsWord(line, aboveWords) || containsAny(line, chineseAbove)
	})
}

// isQuoted reports whether the line begins with ">": RFC 3676 section 4.5.
func isQuoted(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " "), ">") }

// headers are the mail headers of one block, as far as parsing depends on them.
type headers struct {
	subject, sender              string
	hasFrom, hasSubject, hasSent bool
	hasRecipient, hasAddress     bool
	isReply                      bool // the subject begins with "Re:"
	count                        int  // of the headers
}

// skipHeaders removes the headers at the current line. "From" and "To" alone may also be the
// ports of a route: there must be a subject or an address.
func (p *parser) skipHeaders() {
	begin := p.skipBlank(p.at)
	h, end := p.readHeaders(begin)
	isMail := h.hasSubject || h.hasAddress && (h.hasFrom || h.hasRecipient)
	if !isMail {
		return
	}
	if p.headers.subject != "" { // the mail only forwards another one
		h.subject = p.headers.subject
	}
	p.headers = h
	p.drop(end)
}

// skipQuotedHeaders removes headers in the middle of a mail, and the rest with them: the
// quote of a client that marks no lines.
func (p *parser) skipQuotedHeaders() bool {
	if p.at < p.noHeadersBefore {
		return false
	}
	if kind, _ := cutHeader(p.lines[p.at]); kind != headerFrom && kind != headerSubject && kind != headerSent {
		return false
	}
	h, end := p.readHeaders(p.at)
	p.noHeadersBefore = end
	if !h.hasFrom || h.count < 2 || !h.hasSubject && !h.hasSent && !h.hasAddress {
		return false
	}
	p.dropRule()
	if p.isEmpty() {
		p.headers = h
		p.drop(end)
		return true
	}
	p.dropRest(p.refersToQuote())
	return true
}

// readHeaders reads the headers from line at on. A line that begins with white space continues
// the header before it.
func (p *parser) readHeaders(at int) (h headers, end int) {
	last := noHeader
	for end = at; end < len(p.lines); end++ {
		line := p.lines[end]
		if h.count > 0 && (strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")) {
			if last == headerSubject {
				h.subject += " " + strings.TrimSpace(line)
			}
			continue
		}
		kind, value := cutHeader(line)
		if kind == noHeader {
			break
		}
		h.add(kind, value)
		last = kind
	}
	return h, end
}

func (h *headers) add(kind header, value string) {
	h.count++
	switch kind {
	case headerFrom:
		h.hasFrom, h.sender = true, senderName(value)
	case headerTo:
		h.hasRecipient = true
	case headerSubject:
		h.hasSubject = true
		h.subject, h.isReply = cleanSubject(value)
	case headerSent:
		h.hasSent = true
	case noHeader, headerDate, headerOther:
	}
	if kind != headerSubject && (strings.Contains(value, "@") || strings.Contains(value, "[EMAIL")) {
		h.hasAddress = true
	}
}

// cutHeader returns the kind and the value of a header.
func cutHeader(line string) (header, string) {
	line = strings.Trim(line, "*")
	colon := strings.IndexAny(cut(line, maxHeaderName), ":：")
	if colon < 0 {
		return noHeader, ""
	}
	_, size := utf8.DecodeRuneInString(line[colon:])
	return headerNames[fold(strings.Trim(line[:colon], "* "))], strings.Trim(line[colon+size:], "* ")
}

// senderName returns the name in the value of a From header, without the address.
func senderName(value string) string {
	name, _, _ := strings.Cut(value, "<")
	return strings.Trim(name, `"' ;`)
}

// cleanSubject removes the prefixes of replies and forwards from a subject, and reports whether
// there is one of a reply.
func cleanSubject(subject string) (clean string, isReply bool) {
	for {
		colon := strings.IndexAny(cut(subject, maxHeaderName), ":：")
		if colon < 0 {
			return subject, isReply
		}
		kind, ok := subjectPrefixes[fold(strings.TrimSpace(subject[:colon]))]
		if !ok {
			return subject, isReply
		}
		isReply = isReply || kind == replyPrefix
		_, size := utf8.DecodeRuneInString(subject[colon:])
		subject = strings.TrimSpace(subject[colon+size:])
	}
}

// maxNotice bounds the bytes of a paragraph that are searched for the words of a disclaimer.
const maxNotice = 2000

// skipNotice removes a paragraph that a program or a company adds to every mail: "Sent from my
// phone", or a disclaimer.
func (p *parser) skipNotice() bool {
	if p.isEmpty() || p.at > 0 && p.lines[p.at-1] != "" && p.section == inBody {
		return false
	}
	line := strings.TrimLeft(p.lines[p.at], "*_ ")
	start := fold(cut(line, maxNoticeStart))
	if hasAnyPrefix(start, deviceNotices) && len(line) <= maxNoticeStart && !strings.ContainsAny(line, "?:,") {
		p.drop(p.at + 1)
		return true
	}
	if !hasAnyPrefix(start, noticeStarts) {
		return false
	}
	end, size := p.at, 0
	for end < len(p.lines) && p.lines[end] != "" && size <= maxNotice {
		size += len(p.lines[end])
		end++
	}
	if size > maxNotice {
		return false
	}
	text := fold(strings.Join(p.lines[p.at:end], " "))
	if strings.ContainsAny(text, "?？") || !containsAny(text, noticeWords) {
		return false
	}
	p.drop(end)
	return true
}

// Package email finds the text that the sender of an e-mail wrote. Mail headers, quoted
// replies, forwarded messages, signatures and disclaimers around it are no request of the sender.
//
//	m := email.Parse(text)
//	// m.Body is "Where is my container?", m.Subject is "Invoice 4711"
//
// The rules are those of programs that write plain-text mail: the signature delimiter of RFC 3676
// section 4.3, the headers of RFC 5322 section 3.6 in four languages, and the quoting of common
// clients. The cases that GitHub's email_reply_parser and Mailgun's talon handle served as a list of
// these. Text is removed only if several signs agree, because a removed request is worse
// than a signature that remains. A text that is no mail is returned unchanged. Pure; the time is
// linear in the length of the text.
package email

import (
	"slices"
	"strings"
)

// Message contains the parts of a mail that its sender wrote.
type Message struct {
	// Subject is the value of the subject header without "Re:" and "Fwd:", "" if there is none.
	Subject string
	// IsReply reports whether the mail answers another one: its subject begins with "Re:", or a
	// quote has an attribution such as "Ana wrote:".
	IsReply bool
	// Body is the text of the sender. If none remains, it is the thanks of a reply, the subject or, without both,
	// the whole text.
	Body string
	// Reference is the quoted or forwarded text that the body refers to, without its own headers and
	// signature: the lines after "summarize this:", or the forwarded message after "see below". It
	// is "" for the quote of a reply.
	Reference string
}

// Parse divides a mail into its parts.
func Parse(text string) Message {
	p := parser{lines: strings.Split(text, "\n")}
	for i, line := range p.lines {
		p.lines[i] = strings.TrimRight(line, " \t\r")
	}
	if len(p.lines) > 1 {
		p.skipHeaders()
	}
	p.parseLines()
	if !p.removed {
		return Message{Body: text}
	}
	if len(p.reference) == 0 && !p.isReply && p.refersToQuoteAbove() {
		p.reference = p.quote
	}
	m := Message{Subject: p.headers.subject, IsReply: p.isReply || p.headers.isReply, Body: p.bodyText(), Reference: strings.TrimSpace(strings.Join(p.reference, "\n"))}
	switch {
	case m.Body != "":
	case (m.IsReply || p.isQuoting) && p.thanks != "":
		m.Body = p.thanks
	case m.Subject != "":
		m.Body = m.Subject
	default:
		return Message{Body: text}
	}
	return m
}

// Body returns the text of the sender: see [Message].
func Body(text string) string { return Parse(text).Body }

// section is the part of a mail that the parser is in.
type section int

const (
	inBody      section = iota
	inSignature         // after a closing, or in a signature without one
	inDelimited         // after the signature delimiter
)

// parser reads the lines of a mail once. One goroutine owns it.
type parser struct {
	lines   []string // without trailing white space
	at      int      // the current line
	section section
	// expectName reports that the last line that was not blank is a closing, and casual that a name
	// after it may be in lower case.
	expectName, casual bool
	inCode             bool // in a fenced code block
	isReference        bool // the mail is the reference of another one
	isReply            bool // an attribution was found
	isQuoting          bool // a quote without an attribution was found

	headers         headers
	noHeadersBefore int // the line up to which lines were read as headers of a quote

	body      []string
	reference []string
	quote     []string // quoted lines that the text before them does not refer to
	thanks    string   // the first closing that is not formal
	removed   bool     // text that is not in the body
	gap       bool     // text was removed after the last line of the body
}

// parseLines sorts the lines into body, reference, and what is removed.
func (p *parser) parseLines() {
	for p.at < len(p.lines) {
		line := p.lines[p.at]
		fence := strings.Count(line, "```")%2 == 1
		switch {
		case p.inCode || fence:
			p.inCode = p.inCode != fence
			p.section = inBody
			p.keep(line)
		case line == "":
			p.keep(line)
		case p.skipSeparator(), p.skipAttribution(), p.skipQuote(), p.skipQuotedHeaders(), p.skipNotice():
		case p.skipDelimiter(), p.skipClosing(), p.skipSignatureLine(), p.skipUnannouncedSignature():
		default:
			p.keepUntilClosing(line)
		}
	}
}

// keep adds the current line, or a part of it, to the body.
func (p *parser) keep(line string) {
	p.at++
	if line == "" && (p.gap || len(p.body) == 0) {
		return
	}
	if p.gap && len(p.body) > 0 && p.body[len(p.body)-1] != "" {
		p.body = append(p.body, "") // the text before is another paragraph
	}
	p.gap = false
	p.body = append(p.body, line)
}

// drop removes the lines up to the given one.
func (p *parser) drop(end int) {
	p.at = end
	p.removed, p.gap = true, true
}

// bodyText returns the body so far.
func (p *parser) bodyText() string { return strings.TrimSpace(strings.Join(p.body, "\n")) }

// isEmpty reports whether the body has no text so far.
func (p *parser) isEmpty() bool { return len(p.body) == 0 }

// lastLine returns the last line of the body that is not blank.
func (p *parser) lastLine() string {
	for _, line := range slices.Backward(p.body) {
		if line != "" {
			return line
		}
	}
	return ""
}

// announcesText reports whether the body ends in a colon, so that the next text is what it is
// about: "summarize this:".
func (p *parser) announcesText() bool {
	last := p.lastLine()
	return strings.HasSuffix(last, ":") || strings.HasSuffix(last, "：")
}

// refersToQuote reports whether the body announces the text that follows, or points to it: "see below".
func (p *parser) refersToQuote() bool {
	if p.announcesText() {
		return true
	}
	for _, line := range p.body[max(0, len(p.body)-maxPointerLines):] {
		if line = cut(line, maxSignatureLine); containsWord(line, pointerWords) || containsAny(line, chinesePointers) {
			return true
		}
	}
	return false
}

// maxPointerLines bounds the last lines of a body that are searched for a word such as "below".
const maxPointerLines = 8

// dropRule removes a line of marks at the end of the body.
func (p *parser) dropRule() {
	if !isRule(p.lastLine()) {
		return
	}
	last := len(p.body) - 1
	for p.body[last] == "" {
		last--
	}
	p.body = p.body[:last]
}

// beginsParagraph reports whether a blank line, a line of marks or the end of a sentence is before the current line.
func (p *parser) beginsParagraph() bool {
	return p.at == 0 || p.lines[p.at-1] == "" || isRule(p.lines[p.at-1]) || endsSentence(p.lines[p.at-1])
}

func (p *parser) hasTextAfter(at int) bool { return p.skipBlank(at) < len(p.lines) }

// skipBlank returns the first line from at on that is not blank.
func (p *parser) skipBlank(at int) int {
	for at < len(p.lines) && p.lines[at] == "" {
		at++
	}
	return at
}

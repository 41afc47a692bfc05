package email

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// skipDelimiter removes the line "-- " before a signature: RFC 3676 section 4.3. Its
// space may be lost.
func (p *parser) skipDelimiter() bool {
	if p.lines[p.at] != "--" || p.isEmpty() {
		return false
	}
	p.drop(p.at + 1)
	p.section, p.expectName = inDelimited, false
	return true
}

// skipClosing removes a line that consists of a closing: "Kind regards," or "Thanks, Joana".
func (p *parser) skipClosing() bool {
	line := strings.TrimLeft(p.lines[p.at], "*_ ")
	if len(line) <= maxNoticeStart && hasAnyPrefix(fold(line), closingSentences) && !strings.ContainsAny(line, "?:;,") && p.beginsParagraph() {
		p.drop(p.at + 1)
		p.section, p.expectName, p.casual = inSignature, true, true
		return true
	}
	c, ok := matchClosing(line)
	if !ok {
		return false
	}
	rest := line[c.end:]
	if len(rest) > maxSignatureLine {
		return false
	}
	names := trimMarks(rest)
	if c.formal { // "Best regards from Oslo"
		for _, word := range [...]string{"from ", "desde ", "de "} {
			if place, ok := strings.CutPrefix(names, word); ok && isName(place) {
				names = ""
			}
		}
	}
	switch {
	case names == "":
		// "best" alone may be a wrapped line.
		if c.isBest && rest == "" && !p.beginsParagraph() {
			return false
		}
	case !c.mayPrecede(rest, names):
		return false
	}
	if p.thanks == "" && !c.formal && !c.isBest {
		p.thanks = line
	}
	p.drop(p.at + 1)
	p.section, p.expectName, p.casual = inSignature, names == "", c.formal
	return true
}

// skipSignatureLine removes a line of a signature. Any other line ends the signature.
func (p *parser) skipSignatureLine() bool {
	if p.section == inBody {
		return false
	}
	line := strings.TrimSpace(p.lines[p.at])
	if rest, ok := cutPostscript(line); ok {
		p.section = inBody
		if rest == "" {
			p.drop(p.at + 1)
			return true
		}
		p.removed = true
		p.keep(rest)
		return true
	}
	var ok bool
	switch {
	case isRule(line):
		ok = true
	case p.section == inDelimited:
		ok = len(line) <= maxSignatureLine && !looksLikeRequest(line)
	case p.expectName:
		ok = isDetail(line) || p.casual && isLowerName(line)
	default:
		ok = isDetail(line) || p.lines[p.at-1] != "" && isCapitalized(line)
	}
	if !ok {
		p.section = inBody
		return false
	}
	p.drop(p.at + 1)
	p.expectName = false
	return true
}

// maxBlock bounds the lines of a signature without a closing.
const maxBlock = 8

// skipUnannouncedSignature removes a paragraph that is a signature without a closing: a
// name, and then a job title, a company or an address. The name of the sender alone is one too.
func (p *parser) skipUnannouncedSignature() bool {
	if p.isEmpty() || len(p.lines[p.at]) > maxSignatureLine || p.announcesText() || !p.mayBeginSignature() {
		return false
	}
	chunks := splitChunks(p.lines[p.at])
	named := isFullName(chunks[0]) || isName(chunks[0]) && p.at+1 < len(p.lines) && isTeam(p.lines[p.at+1])
	if !named {
		return false
	}
	sure := hasInitial(chunks[0]) || p.headers.sender != "" && strings.EqualFold(strings.TrimSpace(p.lines[p.at]), p.headers.sender)
	end := p.at + 1
	for _, chunk := range chunks[1:] {
		if !isDetail(chunk) {
			return false
		}
		sure = sure || isTeam(chunk)
	}
	for ; end < len(p.lines) && p.lines[end] != ""; end++ {
		if end-p.at >= maxBlock || !isDetail(p.lines[end]) {
			return false
		}
		sure = sure || isTeam(p.lines[end])
	}
	if !sure {
		return false
	}
	p.dropRule()
	p.drop(end)
	p.section, p.expectName = inSignature, false
	return true
}

// mayBeginSignature reports whether a signature without a closing may begin at the current line: a
// paragraph, or the last line of the mail if it begins with a dash. Another item of a list of names
// is no signature.
func (p *parser) mayBeginSignature() bool {
	if !isItem(p.lines[p.at]) {
		return p.beginsParagraph()
	}
	last := p.lastLine()
	if isItem(last) {
		return p.beginsParagraph() && !isDetail(last)
	}
	return p.beginsParagraph() || !p.hasTextAfter(p.at+1)
}

// keepUntilClosing adds the line to the body, without a signature at its end.
func (p *parser) keepUntilClosing(line string) {
	p.section = inBody
	s, ok := findClosing(line)
	if !ok || s.names == "" && !p.hasTextAfter(p.at+1) {
		p.keep(line)
		return
	}
	p.keep(strings.TrimRight(line[:s.start], " \t,，"))
	p.drop(p.at)
	p.section, p.expectName, p.casual = inSignature, s.names == "", s.formal
	if s.postscript != "" {
		p.section = inBody
		p.keep(s.postscript)
		p.at--
	}
}

// closing is a closing at the beginning of a text.
type closing struct {
	end    int  // position after it
	formal bool // it is not only a thanks
	fixed  bool // it has this meaning anywhere in a line
	isBest bool // "best", which is rather an adjective
}

const (
	maxClosings     = 3 // that follow each other
	maxClosingWords = 6 // of one
)

// matchClosing returns the closing at the beginning of a text. Several may follow each other:
// "Thanks and kind regards".
func matchClosing(text string) (c closing, ok bool) {
	for at, n := 0, 0; n < maxClosings; n++ {
		next, found := matchOneClosing(text[at:])
		if !found {
			break
		}
		c.end, ok = at+next.end, true
		c.formal, c.fixed, c.isBest = c.formal || next.formal, c.fixed || next.fixed, next.isBest
		rest := strings.TrimLeft(text[c.end:], " ,.!&，。！")
		for _, word := range [...]string{"and ", "e ", "y "} {
			rest = strings.TrimPrefix(rest, word)
		}
		at = len(text) - len(rest)
	}
	return c, ok
}

func matchOneClosing(text string) (c closing, ok bool) {
	if r, _ := utf8.DecodeRuneInString(text); unicode.Is(unicode.Han, r) {
		text = simplify(cut(text, maxWord))
		for _, phrase := range chineseClosings {
			if strings.HasPrefix(text, phrase) {
				return closing{end: len(phrase), formal: true}, true
			}
		}
		return c, false
	}
	var buffer [maxClosingWords * (maxWord + 1)]byte
	phrase := buffer[:0]
	for at, words := 0, 0; words < maxClosingWords && at < len(text); words++ {
		word, _, _ := strings.Cut(cut(text[at:], maxWord), " ")
		bare := strings.TrimRight(word, ",.!;:-–—~，。！")
		if bare == "" {
			break
		}
		if words > 0 {
			phrase = append(phrase, ' ')
		}
		phrase = appendFolded(phrase, bare)
		if words == 0 && !closingStarts[string(phrase)] {
			break
		}
		if kind, known := closings[string(phrase)]; known {
			c = closing{end: at + len(bare), formal: kind != casualClosing, fixed: kind == fixedClosing, isBest: string(phrase) == "best"}
			ok = true
		}
		if bare != word {
			break
		}
		at += len(word) + 1
	}
	if ok && c.end < len(text) {
		if r, _ := utf8.DecodeRuneInString(text[c.end:]); unicode.IsLetter(r) || unicode.IsDigit(r) {
			return closing{}, false
		}
	}
	return c, ok
}

// mayPrecede reports whether the names after a closing, on its line, are a signature.
func (c *closing) mayPrecede(rest, names string) bool {
	separated := !strings.HasPrefix(rest, " ") || strings.IndexAny(trimSpaces(rest), "-–—") == 0
	chunks := splitChunks(names)
	if !separated && (c.isBest || !c.formal && len(strings.Fields(chunks[0])) > 3) {
		return false
	}
	if len(chunks) > 1 && isLowerName(chunks[0]) && containsWord(chunks[len(chunks)-1], jobWords) {
		chunks = chunks[1:]
	} else if !isName(chunks[0]) && !containsWord(chunks[0], jobWords) {
		return false
	}
	for _, chunk := range chunks {
		if !isDetail(chunk) {
			return false
		}
	}
	return true
}

// lineSignature is a signature at the end of a line.
type lineSignature struct {
	start      int    // of the closing
	names      string // after it
	postscript string // after the names
	formal     bool
}

// findClosing finds a closing inside a line, with the signature that ends the line. A closing that
// begins no sentence must be one that has no other meaning.
func findClosing(line string) (s lineSignature, ok bool) {
	end := byte(0) // the last character before that is no white space
	for at := range len(line) {
		if line[at] != ' ' || at+1 == len(line) {
			if line[at] != ' ' {
				end = line[at]
			}
			if !endsChineseSentence(line[:at+1]) {
				continue
			}
			end = '.'
		}
		begin := at + 1
		sentence := strings.IndexByte(".!?", end) >= 0
		if !sentence && end != ',' && !unicode.IsUpper(rune(line[begin])) {
			continue
		}
		c, found := matchClosing(line[begin:])
		if !found {
			continue
		}
		rest, postscript := splitPostscript(line[begin+c.end:])
		if len(rest) > maxSignatureLine {
			continue
		}
		names := trimMarks(rest)
		switch {
		case names != "" && !c.mayPrecede(rest, names):
		case sentence && (names != "" || postscript != "" || c.formal || strings.HasSuffix(rest, ",")),
			c.fixed && names != "":
			return lineSignature{start: begin, names: names + postscript, postscript: postscript, formal: c.formal}, true
		}
	}
	return s, false
}

// cutPostscript removes the mark of a postscript from the beginning of a line.
func cutPostscript(line string) (rest string, ok bool) {
	for _, mark := range postscriptMarks {
		if len(line) >= len(mark) && strings.EqualFold(line[:len(mark)], mark) {
			return strings.TrimLeft(line[len(mark):], " .:,-：，–—"), true
		}
	}
	return line, false
}

// splitPostscript splits the text after a closing before a postscript.
func splitPostscript(text string) (before, postscript string) {
	for at := 1; at < len(text) && at <= maxSignatureLine; at++ {
		if text[at-1] == ' ' {
			if rest, ok := cutPostscript(text[at:]); ok {
				return strings.TrimSpace(text[:at]), rest
			}
		}
	}
	return text, ""
}

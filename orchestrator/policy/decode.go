package policy

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// variant is a text as it is, or decoded.
type variant struct {
	text string
	// hidden means that the text was encoded although nothing required it, so that a
	// reader of the arguments would not see it.
	hidden bool
	depth  int
}

// Limits of decoding one call.
const (
	maxDecodeDepth = 3
	maxVariants    = 512
	maxDecoded     = 4 << 20 // bytes
)

// decoder decodes the texts of one call.
type decoder struct {
	variants, bytes int
	exceeded        bool
}

// decode returns the text and what it contains in encoded form.
func (d *decoder) decode(text string) []variant {
	list := []variant{{text: text}}
	for i := 0; i < len(list); i++ {
		v := list[i]
		found := decodeLayer(v.text)
		if len(found) > 0 && v.depth == maxDecodeDepth {
			d.exceeded = d.exceeded || !isRepeated(found, list)
			continue
		}
		for _, next := range found {
			if isRepeated([]variant{next}, list) {
				continue
			}
			d.variants++
			d.bytes += len(next.text)
			if d.variants > maxVariants || d.bytes > maxDecoded {
				d.exceeded = true
				return list
			}
			next.depth, next.hidden = v.depth+1, next.hidden || v.hidden
			list = append(list, next)
		}
	}
	return list
}

// isRepeated reports whether all texts are in the list already.
func isRepeated(texts, list []variant) bool {
	for _, t := range texts {
		known := false
		for _, v := range list {
			known = known || v.text == t.text
		}
		if !known {
			return false
		}
	}
	return true
}

var (
	percentEscape  = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	unicodeEscape  = regexp.MustCompile(`\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}`)
	charCodes      = regexp.MustCompile(`(?:\b\d{2,3}[ ,;]+){7,}\d{2,3}\b`)
	base64Text     = regexp.MustCompile(`[A-Za-z0-9+/_-]{16,}={0,2}`)
	base32Text     = regexp.MustCompile(`[A-Za-z2-7]{20,}`)
	hexText        = regexp.MustCompile(`(?i)(?:[0-9a-f]{2}){10,}`)
	hexGroups      = regexp.MustCompile(`(?i)(?:[0-9a-f]{2}[ :.-]){9,}[0-9a-f]{2}`)
	notHexadecimal = regexp.MustCompile(`(?i)[^0-9a-f]`)
)

// minNeedless is the number of letters and digits in escapes from which the escaping has no
// other reason than to hide the text.
const minNeedless = 8

// layer collects the texts that result if one layer of encodings is removed from a text.
type layer struct {
	text  string
	found []variant
}

// decodeLayer removes one layer of every encoding that the text contains.
func decodeLayer(text string) []variant {
	l := &layer{text: text}
	l.decodeEscapes()
	l.decodeCharCodes()
	l.decodeBytes()
	l.decodeJSON()
	return l.found
}

// add adds a decoded text. hidden means that the encoding has no other reason than to hide
// it.
func (l *layer) add(decoded string, hidden bool) {
	if decoded != l.text && decoded != "" {
		l.found = append(l.found, variant{text: decoded, hidden: hidden})
	}
}

// decodeEscapes replaces escapes of URLs, strings and HTML, and removes invisible
// characters.
func (l *layer) decodeEscapes() {
	if strings.IndexByte(l.text, '%') >= 0 {
		l.unescape(percentEscape, 1)
	}
	if strings.IndexByte(l.text, '\\') >= 0 {
		l.unescape(unicodeEscape, 2)
	}
	if strings.IndexByte(l.text, '&') >= 0 {
		l.add(html.UnescapeString(l.text), strings.Count(l.text, "&#") >= minNeedless)
	}
	if visible := removeInvisible(l.text); visible != l.text {
		l.add(visible, len(l.text)-len(visible) >= minNeedless)
	}
}

// unescape replaces escapes, which are skip characters before hexadecimal digits.
func (l *layer) unescape(pattern *regexp.Regexp, skip int) {
	needless := 0
	decoded := pattern.ReplaceAllStringFunc(l.text, func(escape string) string {
		n, err := strconv.ParseUint(escape[skip:], 16, 32)
		if err != nil {
			return escape
		}
		if n < utf8.RuneSelf && (unicode.IsLetter(rune(n)) || unicode.IsDigit(rune(n))) {
			needless++
		}
		if skip == 1 { // a byte of UTF-8
			return string([]byte{byte(n)})
		}
		return string(rune(n))
	})
	l.add(strings.ToValidUTF8(decoded, "\uFFFD"), needless >= minNeedless)
}

// decodeCharCodes decodes lists of character codes.
func (l *layer) decodeCharCodes() {
	for _, codes := range charCodes.FindAllString(l.text, -1) {
		var list []any
		for _, code := range strings.FieldsFunc(codes, func(r rune) bool { return r < '0' || r > '9' }) {
			n, _ := strconv.Atoi(code) // the pattern permits digits only
			list = append(list, float64(n))
		}
		if decoded, ok := spellCodes(list); ok {
			l.add(decoded, true)
		}
	}
}

// decodeBytes decodes base64, base32 and hexadecimal numbers.
func (l *layer) decodeBytes() {
	add := func(data []byte, err error) {
		if err == nil && isReadable(data) {
			l.add(string(data), true)
		}
	}
	for _, token := range base64Text.FindAllString(l.text, -1) {
		token = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(token, "="))
		if len(token)%4 == 1 {
			token = token[:len(token)-1]
		}
		add(base64.RawStdEncoding.DecodeString(token))
	}
	for _, token := range base32Text.FindAllString(l.text, -1) {
		for n := len(token) % 8; n == 1 || n == 3 || n == 6; n = len(token) % 8 {
			token = token[:len(token)-1]
		}
		add(base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(token)))
	}
	for _, token := range hexText.FindAllString(l.text, -1) {
		add(hex.DecodeString(token))
	}
	for _, token := range hexGroups.FindAllString(l.text, -1) {
		add(hex.DecodeString(notHexadecimal.ReplaceAllString(token, "")))
	}
}

// decodeJSON adds the texts in an object or a list that is a text itself.
func (l *layer) decodeJSON() {
	trimmed := strings.TrimSpace(l.text)
	if !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "[") {
		return
	}
	leaves, _ := readLeaves(json.RawMessage(trimmed))
	for i := range leaves {
		l.add(leaves[i].text, leaves[i].decoded)
	}
}

// isReadable reports whether decoded bytes are a text, which random bytes are not.
func isReadable(data []byte) bool {
	if len(data) < 10 || !utf8.Valid(data) {
		return false
	}
	ascii := 0
	for _, b := range data {
		if b >= ' ' && b <= '~' || b == '\n' || b == '\r' || b == '\t' {
			ascii++
		}
	}
	return ascii*10 >= len(data)*9
}

// removeInvisible removes characters that are not displayed.
func removeInvisible(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf && unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, text)
}

// normalize returns the letters and digits of a text in lower case: what remains if
// separators are inserted and the case is changed.
func normalize(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

package pins

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"unicode"
)

// Finding is suspicious text in a definition. It is a hint for a person: it does not
// prevent a call.
type Finding struct {
	Pointer string `json:"pointer"`
	Kind    string `json:"kind"`
	Excerpt string `json:"excerpt"` // with escapes for what cannot be seen
}

// Kinds of a Finding.
const (
	InvisibleText = "invisible characters"
	HiddenMarkup  = "hidden markup"
	Imperative    = "instruction to the model"
)

// maxFindings bounds the findings of one definition.
const maxFindings = 20

// suspicious are patterns of text that addresses a model. They are about phrases that a
// description of a tool has no reason to contain.
var suspicious = []struct {
	kind    string
	pattern *regexp.Regexp
}{
	{HiddenMarkup, regexp.MustCompile(`<!--|\[//\]: ?#|\x1b\[`)},
	{HiddenMarkup, regexp.MustCompile(`(?i)</?\s*(important|system|instructions?|secret|hidden|admin)\s*>`)},
	{Imperative, regexp.MustCompile(`(?i)\b(ignore|disregard|forget|override)\b[^.\n]{0,40}\b(instructions?|rules|prompts?|guidelines|messages)\b`)},
	{Imperative, regexp.MustCompile(`(?i)\b(do not|don't|never|without)\b[^.\n]{0,20}\b(tell|telling|mention\w*|inform\w*|reveal\w*|show\w*|notify\w*|ask\w*)\b[^.\n]{0,30}\b(users?|anyone|human|operator)\b`)},
	{Imperative, regexp.MustCompile(`(?i)\b(before|after|when|whenever)\b[^.\n]{0,30}\b(using|calling|use|call|invoking)\b[^.\n]{0,30}\btools?\b[^.\n]{0,60}\b(must|first|always)\b`)},
	{Imperative, regexp.MustCompile(`(?i)\byou (must|are required to|have to|should always)\b`)},
	{Imperative, regexp.MustCompile(`(?i)\bsystem prompt\b|\b(you are|act as) (now )?an? (ai|assistant|agent|language model)\b`)},
	{Imperative, regexp.MustCompile(`(?i)\b(read|send|include|pass|append|copy|upload)\b[^.\n]{0,60}(~/\.|\.ssh\b|id_rsa|\.env\b|/etc/passwd|\bmcp\.json\b|\b(private|api) keys?\b|\bcredentials\b)`)},
	{Imperative, regexp.MustCompile(`(?i)\b(ignore|ignora|ignorez|ignoriere)\b[^.\n]{0,30}\b(instrucciones|instruções|instructions|anweisungen)\b`)},
}

// Inspect returns the suspicious texts of a definition.
func Inspect(definition json.RawMessage) []Finding {
	var found []Finding
	visit(definition, func(path string, v any) {
		text, ok := v.(string)
		if !ok {
			return
		}
		if i := findInvisible(text); i >= 0 {
			found = append(found, Finding{path, InvisibleText, excerpt(text, i, i+1)})
		}
		for _, s := range suspicious {
			if at := s.pattern.FindStringIndex(text); at != nil {
				found = append(found, Finding{path, s.kind, excerpt(text, at[0], at[1])})
			}
		}
	})
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Excerpt, b.Excerpt))
	})
	return found[:min(len(found), maxFindings)]
}

// findInvisible returns the position of the first character that cannot be seen, or -1.
// Joiners inside text that is not ASCII are part of scripts and of emoji.
func findInvisible(text string) int {
	previous := rune(0)
	for i, r := range text {
		joiner := (r == '\u200c' || r == '\u200d' || r == '\ufe0f') && previous > unicode.MaxASCII
		control := unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r'
		filler := r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\uffa0' || r >= 0xE0100 && r <= 0xE01EF
		if !joiner && (control || filler || unicode.In(r, unicode.Cf, unicode.Co)) {
			return i
		}
		previous = r
	}
	return -1
}

const excerptContext = 30

// excerpt returns the bytes from and to of the text, and a few around them.
func excerpt(text string, from, to int) string {
	runes := []rune(text[max(0, from-excerptContext):min(len(text), to+excerptContext)])
	quoted := strconv.Quote(string(runes))
	return quoted[1 : len(quoted)-1]
}

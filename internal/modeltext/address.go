package modeltext

import "regexp"

// links match what a program that shows a text may make a link of. In a placeholder, brackets
// belong to the name.
var links = []*regexp.Regexp{
	// The target of a link in Markdown, up to the end if it is not closed.
	regexp.MustCompile(`\]\([^)]*\)?`),
	// A tag of HTML, with its attributes, or a target in angle brackets.
	regexp.MustCompile(`<[a-zA-Z/][^<>=]*(?:>|=(?:"[^"]*"?|'[^']*'?|[^<>"'])*>?)`),
	// The rest of an address after its scheme.
	regexp.MustCompile(`(?i)(?:://|\bwww\.|\b(?:mailto|sms|xmpp):)[^\s<]*`),
	// A domain with a port, a path or a query, and without a scheme.
	regexp.MustCompile(`(?:` + label + `\.)+[\p{L}\p{N}]+(?:[/?#]|:\d)[^\s<]*`),
	// A domain, or an email address, of which a part is a placeholder.
	regexp.MustCompile(placeholder + `[\p{L}\p{N}_-]*(?:\.` + label + `)+\.\p{L}{2,}`),
	regexp.MustCompile(placeholder + `(?:[\w.+%-]|` + placeholder + `)*@` + label + `\.`),
}

const (
	placeholder = `\[[^\[\]\s]*\]`
	label       = `(?:[\p{L}\p{N}_-]|` + placeholder + `)+`
)

// findLinks returns the start and the end of each part of the text that may become a link.
func findLinks(text string) (found [][]int) {
	for _, link := range links {
		found = append(found, link.FindAllStringIndex(text, -1)...)
	}
	return found
}

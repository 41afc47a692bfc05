package modeltext

import "regexp"

// links match what a program that shows a text may make a link of, and more: they do not depend
// on the details of Markdown and HTML, in which programs differ.
var links = []*regexp.Regexp{
	// The target of a link in Markdown. Unless its end is certain, the rest of the paragraph.
	regexp.MustCompile(`\]\((?:[^()<\\\n]*\)|(?s:.*?)(?:\n[ \t]*\n|$))`),
	// The definition of a target, which may begin on the next line.
	regexp.MustCompile(`\]:\s*.*`),
	// A target in angle brackets. Otherwise a tag of HTML, and all that follows it.
	regexp.MustCompile(`<(?:[a-zA-Z][\w.+-]*:[^\s<>"']*>|(?:[a-zA-Z/]|\[[^\[\]\s]*\][^>])(?s:.*))`),
	// A word that may be an address: with a slash, @ or &, or with a dot or ? inside.
	regexp.MustCompile(`\S*(?:[/@&]|[.?][\p{L}\p{N}_\[-])\S*`),
}

// findLinks returns the start and the end of each part of the text that may become a link.
func findLinks(text string) (found [][]int) {
	for _, link := range links {
		found = append(found, link.FindAllStringIndex(text, -1)...)
	}
	return found
}

package capabilities

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// nameProblem returns why a text is not a valid name; "" if it is one.
func nameProblem(name string) string {
	switch {
	case name == "":
		return "must not be empty"
	case utf8.RuneCountInString(name) > maxNameLength:
		return fmt.Sprintf("is longer than %d characters", maxNameLength)
	case strings.TrimSpace(name) != name:
		return fmt.Sprintf("%q starts or ends with white space", name)
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return fmt.Sprintf("%+q contains an invisible character", name)
		}
	}
	return ""
}

func domainProblem(name string) string {
	if strings.EqualFold(name, contract.Unknown) {
		return fmt.Sprintf("%q is reserved for requests that match no agent", name)
	}
	return nameProblem(name)
}

func intentProblem(name string) string {
	if name == contract.AnyDomain {
		return `"*" means any domain; an intent must be named`
	}
	return domainProblem(name)
}

// kindProblem returns why a text is none of the known kinds of masked text; "" if it is
// one.
func kindProblem(name string, known []string) string {
	if name == "" || slices.Contains(known, name) {
		return nameProblem(name)
	}
	if near := strictyaml.Nearest(name, known); near != "" {
		return fmt.Sprintf("%q is not a kind of text that is masked; did you mean %q?", truncateText(name), near)
	}
	return fmt.Sprintf("%q is not a kind of text that is masked; known kinds: %s", truncateText(name), strings.Join(known, ", "))
}

// textProblem returns why a text is empty, too long or has control characters; "" if
// it is valid.
func textProblem(s string, most int) string {
	switch {
	case strings.TrimSpace(s) == "":
		return "must not be empty"
	case utf8.RuneCountInString(s) > most:
		return fmt.Sprintf("is longer than %d characters", most)
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return "contains control characters"
	}
	return ""
}

// truncateText shortens a value of the file that an error text repeats.
func truncateText(s string) string {
	if utf8.RuneCountInString(s) <= maxNameLength {
		return s
	}
	return string([]rune(s)[:maxNameLength]) + "…"
}

package capabilities

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// The bounds of a registry's values.
const (
	maxNameLength        = 64 // characters of an intent, a domain, a scope, …
	maxKeywordLength     = 100
	maxUtteranceLength   = 2000
	maxDescriptionLength = 2000

	maxThreshold      = 1.1 // the best score there is (003 §3)
	maxTopK           = 8
	maxTokens         = 100_000_000
	maxAnswerTokens   = 100_000 // tokens
	maxInFlight       = 100_000
	maxPriority       = 1_000_000
	maxHealthInterval = 86_400
)

// checker finds what a decoded file says but may not mean, and records it in
// the document. check is the whole of it; checkEntry lives in check_entry.go.
type checker struct {
	doc *strictyaml.Document
	at  strictyaml.Path // the part under check; wrong's steps start here
}

func checkDocument(doc *strictyaml.Document, d *fileContent) {
	c := checker{doc: doc}
	if d.Version != formatVersion {
		c.report("must be 1, the only version there is", "version")
	}
	if d.Clients == nil {
		c.report("has no clients; write \"clients: {}\" for a registry without agents", "clients")
	}
	// Sorted, so that a file which is all mistakes always shows the same ones.
	for _, id := range slices.Sorted(maps.Keys(d.Clients)) {
		entry := d.Clients[id]
		c.below("clients", id).checkEntry(id, &entry)
	}
	c.below("routing").checkRouting(&d.Routing)
	c.below("fallback").checkFallback(&d.Fallback)
	for _, subject := range slices.Sorted(maps.Keys(d.Grants)) {
		grant := d.Grants[subject]
		c.below("grants", subject).checkGrant(subject, &grant)
	}
}

func (c checker) below(steps ...any) checker {
	return checker{doc: c.doc, at: c.at.At(steps...)}
}

// report records a mistake about the value that the steps lead to.
func (c checker) report(detail string, steps ...any) {
	c.doc.Errorf(c.at.At(steps...), "%s", detail)
}

// checkRange wants from ≤ v ≤ to.
func checkRange[N int | float64](c checker, v, from, to N, steps ...any) {
	if v < from || v > to {
		c.report(fmt.Sprintf("must be from %v to %v, got %v", from, to, v), steps...)
	}
}

func (c checker) checkOneOf(v string, allowed []string, steps ...any) {
	if !slices.Contains(allowed, v) {
		c.report(fmt.Sprintf("must be %s, got %q", strings.Join(allowed, ", "), v), steps...)
	}
}

func (c checker) checkRouting(r *Routing) {
	checkRange(c, r.ConfidenceThreshold, 0, maxThreshold, "confidence_threshold")
	if r.MinConfidence != nil {
		checkRange(c, *r.MinConfidence, 0, 1, "min_confidence")
	}
	checkRange(c, r.AmbiguityThreshold, 0, 1, "ambiguity_threshold")
	checkRange(c, r.TopK, 1, maxTopK, "topk")
	c.checkOneOf(r.ConflictPolicy, []string{PreferSpecific}, "conflict_policy")
}

// languageTag is the shape of a BCP 47 tag, as far as one can tell without the
// list of languages.
var languageTag = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)

func (c checker) checkFallback(f *Fallback) {
	c.checkOneOf(f.Policy, []string{FallbackAuto, FallbackAnswer, FallbackUnsupported, FallbackPropose}, "policy")
	checkRange(c, f.MaxTokens, 1, maxAnswerTokens, "max_tokens")
	if f.Language != "auto" && !languageTag.MatchString(f.Language) {
		c.report(fmt.Sprintf("must be auto or a language tag such as pt-BR, got %q", f.Language), "language")
	}
}

func (c checker) checkGrant(subject string, g *contract.Grant) {
	c.checkID(subject)
	if len(g.Intents) == 0 {
		c.report("grants no intent; list at least one", "intents")
	}
	c.checkNames(g.Intents, intentProblem, "intents")
	c.checkNames(g.Domains, domainProblem, "domains")
	checkRange(c, g.Priority, -maxPriority, maxPriority, "priority")
	c.below("requires").checkRequires(&g.Requires)
}

func (c checker) checkRequires(r *contract.Requires) {
	c.checkNames(r.Scopes, nameProblem, "scopes")
	c.checkNames(r.Tenants, nameProblem, "tenants")
	c.checkNames(r.DataClasses, kindProblem(redact.Kinds()), "data_classes")
}

// checkID checks a key that must be an agent id.
func (c checker) checkID(id string) {
	if !contract.ValidAgentID(id) {
		c.doc.KeyErrorf(c.at, "%q is not an agent id: up to 64 of a-z, 0-9, _ and -, with a letter first", truncateText(id))
	}
}

// checkNames checks a list of names: each by the rule, none of them twice.
func (c checker) checkNames(list []string, trouble func(string) string, steps ...any) {
	seen := make(map[string]bool, len(list))
	for i, name := range list {
		if t := trouble(name); t != "" {
			c.report(t, append(slices.Clone(steps), i)...)
		} else if seen[name] {
			c.report(fmt.Sprintf("%q is listed twice", name), append(slices.Clone(steps), i)...)
		}
		seen[name] = true
	}
}

// nameProblem says what keeps a text from being a name; "" for nothing.
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
			return fmt.Sprintf("%+q holds a character that cannot be seen", name)
		}
	}
	return ""
}

func domainProblem(name string) string {
	if strings.EqualFold(name, contract.Unknown) {
		return fmt.Sprintf("%q is reserved for requests that nothing here fits", name)
	}
	return nameProblem(name)
}

func intentProblem(name string) string {
	if name == contract.AnyDomain {
		return `"*" stands for any domain; an intent must be named`
	}
	return domainProblem(name)
}

// kindProblem says what keeps a text from being one of the words known where
// kinds of masked text are listed.
func kindProblem(known []string) func(string) string {
	return func(name string) string {
		if name == "" || slices.Contains(known, name) {
			return nameProblem(name)
		}
		if near := strictyaml.Nearest(name, known); near != "" {
			return fmt.Sprintf("%q is no kind of text that is masked; did you mean %q?", truncateText(name), near)
		}
		return fmt.Sprintf("%q is no kind of text that is masked; known here: %s", truncateText(name), strings.Join(known, ", "))
	}
}

// checkText checks a text for people.
func (c checker) checkText(s string, most int, steps ...any) {
	switch {
	case strings.TrimSpace(s) == "":
		c.report("must not be empty", steps...)
	case utf8.RuneCountInString(s) > most:
		c.report(fmt.Sprintf("is longer than %d characters", most), steps...)
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		c.report("holds control characters", steps...)
	}
}

// truncateText bounds what an error text repeats of a file.
func truncateText(s string) string {
	if utf8.RuneCountInString(s) <= maxNameLength {
		return s
	}
	return string([]rune(s)[:maxNameLength]) + "…"
}

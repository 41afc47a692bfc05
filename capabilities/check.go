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
	maxName        = 64 // characters of an intent, a domain, a scope, …
	maxKeyword     = 100
	maxUtterance   = 2000
	maxDescription = 2000

	maxThreshold   = 1.1 // the best score there is (003 §3)
	maxTopK        = 8
	maxTokens      = 100_000_000
	maxAnswer      = 100_000 // tokens
	maxInFlight    = 100_000
	maxPriority    = 1_000_000
	maxIntervalSec = 86_400
)

// checker finds what a decoded file says but may not mean, and records it in
// the document. check is the whole of it; checkEntry lives in check_entry.go.
type checker struct {
	doc *strictyaml.Document
	at  strictyaml.Path // the part under check; wrong's steps start here
}

func check(doc *strictyaml.Document, d *document) {
	c := checker{doc: doc}
	if d.Version != formatVersion {
		c.wrong("must be 1, the only version there is", "version")
	}
	if d.Clients == nil {
		c.wrong("has no clients; write \"clients: {}\" for a registry without agents", "clients")
	}
	// Sorted, so that a file which is all mistakes always shows the same ones.
	for _, id := range slices.Sorted(maps.Keys(d.Clients)) {
		entry := d.Clients[id]
		c.in("clients", id).entry(id, &entry)
	}
	c.in("routing").routing(&d.Routing)
	c.in("fallback").fallback(&d.Fallback)
	for _, subject := range slices.Sorted(maps.Keys(d.Grants)) {
		grant := d.Grants[subject]
		c.in("grants", subject).grant(subject, &grant)
	}
}

func (c checker) in(steps ...any) checker {
	return checker{doc: c.doc, at: c.at.At(steps...)}
}

// wrong records a mistake about the value that the steps lead to.
func (c checker) wrong(detail string, steps ...any) {
	c.doc.Errorf(c.at.At(steps...), "%s", detail)
}

// within wants from ≤ v ≤ to.
func within[N int | float64](c checker, v, from, to N, steps ...any) {
	if v < from || v > to {
		c.wrong(fmt.Sprintf("must be from %v to %v, got %v", from, to, v), steps...)
	}
}

func (c checker) oneOf(v string, allowed []string, steps ...any) {
	if !slices.Contains(allowed, v) {
		c.wrong(fmt.Sprintf("must be %s, got %q", strings.Join(allowed, ", "), v), steps...)
	}
}

func (c checker) routing(r *Routing) {
	within(c, r.ConfidenceThreshold, 0, maxThreshold, "confidence_threshold")
	if r.MinConfidence != nil {
		within(c, *r.MinConfidence, 0, 1, "min_confidence")
	}
	within(c, r.AmbiguityThreshold, 0, 1, "ambiguity_threshold")
	within(c, r.TopK, 1, maxTopK, "topk")
	c.oneOf(r.ConflictPolicy, []string{PreferSpecific}, "conflict_policy")
}

// languageTag is the shape of a BCP 47 tag, as far as one can tell without the
// list of languages.
var languageTag = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)

func (c checker) fallback(f *Fallback) {
	c.oneOf(f.Policy, []string{FallbackAuto, FallbackAnswer, FallbackUnsupported, FallbackPropose}, "policy")
	within(c, f.MaxTokens, 1, maxAnswer, "max_tokens")
	if f.Language != "auto" && !languageTag.MatchString(f.Language) {
		c.wrong(fmt.Sprintf("must be auto or a language tag such as pt-BR, got %q", f.Language), "language")
	}
}

func (c checker) grant(subject string, g *contract.Grant) {
	c.id(subject)
	if len(g.Intents) == 0 {
		c.wrong("grants no intent; list at least one", "intents")
	}
	c.names(g.Intents, intentTrouble, "intents")
	c.names(g.Domains, domainTrouble, "domains")
	within(c, g.Priority, -maxPriority, maxPriority, "priority")
	c.in("requires").requires(&g.Requires)
}

func (c checker) requires(r *contract.Requires) {
	c.names(r.Scopes, nameTrouble, "scopes")
	c.names(r.Tenants, nameTrouble, "tenants")
	c.names(r.DataClasses, kindTrouble(redact.Kinds()), "data_classes")
}

// id checks a key that must be an agent id.
func (c checker) id(id string) {
	if !contract.ValidAgentID(id) {
		c.doc.KeyErrorf(c.at, "%q is not an agent id: up to 64 of a-z, 0-9, _ and -, with a letter first", shorten(id))
	}
}

// names checks a list of names: each by the rule, none of them twice.
func (c checker) names(list []string, trouble func(string) string, steps ...any) {
	seen := make(map[string]bool, len(list))
	for i, name := range list {
		if t := trouble(name); t != "" {
			c.wrong(t, append(slices.Clone(steps), i)...)
		} else if seen[name] {
			c.wrong(fmt.Sprintf("%q is listed twice", name), append(slices.Clone(steps), i)...)
		}
		seen[name] = true
	}
}

// nameTrouble says what keeps a text from being a name; "" for nothing.
func nameTrouble(name string) string {
	switch {
	case name == "":
		return "must not be empty"
	case utf8.RuneCountInString(name) > maxName:
		return fmt.Sprintf("is longer than %d characters", maxName)
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

func domainTrouble(name string) string {
	if strings.EqualFold(name, contract.Unknown) {
		return fmt.Sprintf("%q is reserved for requests that nothing here fits", name)
	}
	return nameTrouble(name)
}

func intentTrouble(name string) string {
	if name == contract.AnyDomain {
		return `"*" stands for any domain; an intent must be named`
	}
	return domainTrouble(name)
}

// kindTrouble says what keeps a text from being one of the words known where
// kinds of masked text are listed.
func kindTrouble(known []string) func(string) string {
	return func(name string) string {
		if name == "" || slices.Contains(known, name) {
			return nameTrouble(name)
		}
		if near := strictyaml.Nearest(name, known); near != "" {
			return fmt.Sprintf("%q is no kind of text that is masked; did you mean %q?", shorten(name), near)
		}
		return fmt.Sprintf("%q is no kind of text that is masked; known here: %s", shorten(name), strings.Join(known, ", "))
	}
}

// text checks a text for people.
func (c checker) text(s string, most int, steps ...any) {
	switch {
	case strings.TrimSpace(s) == "":
		c.wrong("must not be empty", steps...)
	case utf8.RuneCountInString(s) > most:
		c.wrong(fmt.Sprintf("is longer than %d characters", most), steps...)
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		c.wrong("holds control characters", steps...)
	}
}

// shorten bounds what an error text repeats of a file.
func shorten(s string) string {
	if utf8.RuneCountInString(s) <= maxName {
		return s
	}
	return string([]rune(s)[:maxName]) + "…"
}

package golden

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// Limits of a case.
const (
	maxID  = 128 // characters
	maxTag = 64
	// maxKnownFailure bounds the reason of a known failure, in characters.
	maxKnownFailure = 500
	maxListed       = 8  // names listed in an error
	maxQuoted       = 60 // characters of an invalid value quoted in an error
)

// caseChecker validates the fields of cases. report records an error at the
// field that the steps lead to.
type caseChecker struct {
	names  *DeclaredNames // nil = any name is allowed
	report func(detail string, steps ...any)
}

// newShape returns a validator of the `validate` tags of cases, which have no rules of
// their own.
var newShape = sync.OnceValues(func() (*strictyaml.Validator, error) { return strictyaml.NewValidator(nil) })

func (c caseChecker) checkCase(k *Case) {
	c.checkShape(k)
	c.checkID(k.ID)
	c.checkRequest(k)
	c.checkExpect(k)
	for i, set := range k.Alternates {
		c.checkAgents(set, "alternates", i)
	}
	if len(k.Alternates) > 0 && k.Expect.Agents == nil {
		c.report("are alternates of expect.agents, which this case does not name: add it", "alternates")
	}
	for i, tag := range k.Tags {
		if tag == "" || utf8.RuneCountInString(tag) > maxTag || strings.ContainsFunc(tag, isSpace) {
			c.report(fmt.Sprintf("a tag is 1 to %d characters without white space, got %q", maxTag, truncateValue(tag)), "tags", i)
		}
	}
	if k.LLM != nil && len(k.LLM) == 0 {
		c.report("is an empty list: write the replies of the model, or leave it out", "llm")
	}
	if r := k.KnownFailure; r != "" && strings.TrimSpace(r) == "" || utf8.RuneCountInString(r) > maxKnownFailure {
		c.report(fmt.Sprintf("is the reason why the case fails, 1 to %d characters", maxKnownFailure), "known_failure")
	}
}

// checkShape reports the fields that violate their tags, with their keys, because not
// every format has them.
func (c caseChecker) checkShape(k *Case) {
	shape, err := newShape()
	if err != nil {
		c.report(err.Error())
		return
	}
	for _, p := range shape.Problems(k) {
		c.report(p.String(), p.Steps...)
	}
}

func (c caseChecker) checkID(id string) {
	switch {
	case id == "":
		c.report("a case needs an id: it is how a baseline knows it again", "id")
	case utf8.RuneCountInString(id) > maxID || strings.ContainsFunc(id, isSpace):
		c.report(fmt.Sprintf("an id is 1 to %d characters without white space, got %q", maxID, truncateValue(id)), "id")
	}
}

// checkRequest applies the limits of the REST interface.
func (c caseChecker) checkRequest(k *Case) {
	if strings.TrimSpace(k.Input) == "" {
		c.report("a case needs an input: the text of the request", "input")
	} else if len(k.Input) > contract.MaxPromptBytes {
		c.report(fmt.Sprintf("is %d bytes long; a request has at most %d", len(k.Input), contract.MaxPromptBytes), "input")
	}
	if !utf8.ValidString(k.Input) {
		c.report("holds bytes that are not UTF-8", "input")
	}
	if n := len(k.History); n > contract.MaxHistoryTurns {
		c.report(fmt.Sprintf("has %d turns; a request has at most %d", n, contract.MaxHistoryTurns), "history")
	}
	if strings.TrimSpace(k.Tenant) != k.Tenant {
		c.report(fmt.Sprintf("a tenant has no white space at its ends, got %q", truncateValue(k.Tenant)), "tenant")
	}
	for i, t := range k.History {
		if n := utf8.RuneCountInString(t.Content); n > maxTurn {
			c.report(fmt.Sprintf("has %d characters; a turn has at most %d", n, maxTurn), "history", i, "content")
		}
	}
}

// maxTurn is the REST interface's limit for one turn, in characters.
const maxTurn = 65536

func (c caseChecker) checkExpect(k *Case) {
	e := &k.Expect
	if e.Outcome == "" && e.Agents == nil && e.Intent == "" && e.Domains == nil && e.Reason == "" {
		c.report("a case needs something to expect: outcome, agents, intent, domains or reason", "expect")
		return
	}
	if len(e.Agents) > 0 && e.Outcome != "" && e.Outcome != Dispatch {
		c.report(fmt.Sprintf("are chosen when the outcome is dispatch only, not %s: leave one of them out", e.Outcome), "expect", "agents")
	}
	if e.Agents != nil && len(e.Agents) == 0 && e.Outcome == Dispatch {
		c.report("are none, and a dispatch has at least one: name it, or leave one of them out", "expect", "agents")
	}
	c.checkAgents(e.Agents, "expect", "agents")
	if c.names == nil {
		return
	}
	if e.Intent != "" {
		c.checkDeclared("intent", e.Intent, c.names.Intents, "expect", "intent")
	}
	for i, d := range e.Domains {
		c.checkDeclared("domain", d, c.names.Domains, "expect", "domains", i)
	}
}

func (c caseChecker) checkAgents(set []string, steps ...any) {
	if c.names == nil {
		return
	}
	for i, id := range set {
		if slices.Contains(c.names.Granted, id) && !slices.Contains(c.names.Agents, id) {
			c.report(id+" registers itself, and the registry has only a grant for it: name a registry that declares it under clients",
				append(slices.Clone(steps), i)...)
			continue
		}
		c.checkDeclared("agent", id, c.names.Agents, append(slices.Clone(steps), i)...)
	}
}

// checkDeclared requires a name that the registry declares.
func (c caseChecker) checkDeclared(what, name string, names []string, steps ...any) {
	if _, found := slices.BinarySearch(names, name); found {
		return
	}
	detail := fmt.Sprintf("the registry has no %s %q", what, truncateValue(name))
	switch near := strictyaml.Nearest(name, names); {
	case near != "":
		detail += fmt.Sprintf("; did you mean %q?", near)
	case len(names) == 0:
		detail += ": it declares none"
	default:
		detail += "; it has " + listFirst(names)
	}
	c.report(detail, steps...)
}

// listFirst lists the first names.
func listFirst(names []string) string {
	if len(names) <= maxListed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), len(names)-maxListed)
}

// truncateValue truncates a value for an error message.
func truncateValue(s string) string {
	if utf8.RuneCountInString(s) <= maxQuoted {
		return s
	}
	return string([]rune(s)[:maxQuoted]) + "…"
}

func isSpace(r rune) bool {
	return r <= ' ' || r == 0x7f || r == 0x85 || r == 0xa0 || r >= 0x2028 && r <= 0x2029
}

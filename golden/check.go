package golden

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// The bounds of a case.
const (
	maxID   = 128 // characters
	maxTag  = 64
	maxFew  = 8  // names an error lists
	maxText = 60 // characters of a wrong value it repeats
)

// checker holds the values of cases to what they may be. wrong records what is
// wrong with the part of the case that the steps lead to.
type checker struct {
	names *DeclaredNames // nil = any
	wrong func(detail string, steps ...any)
}

func (c checker) check(k *Case) {
	c.id(k.ID)
	c.request(k)
	c.expect(k)
	for i, set := range k.Alternates {
		c.agents(set, "alternates", i)
	}
	if len(k.Alternates) > 0 && k.Expect.Agents == nil {
		c.wrong("are alternates of expect.agents, which this case does not name: add it", "alternates")
	}
	c.word("split", k.Split, []string{Train, Validation, Test}, "split")
	for i, tag := range k.Tags {
		if tag == "" || utf8.RuneCountInString(tag) > maxTag || strings.ContainsFunc(tag, isSpace) {
			c.wrong(fmt.Sprintf("a tag is 1 to %d characters without white space, got %q", maxTag, shown(tag)), "tags", i)
		}
	}
	if k.LLM != nil && len(k.LLM) == 0 {
		c.wrong("is an empty list: write the replies of the model, or leave it out", "llm")
	}
}

func (c checker) id(id string) {
	switch {
	case id == "":
		c.wrong("a case needs an id: it is how a baseline knows it again", "id")
	case utf8.RuneCountInString(id) > maxID || strings.ContainsFunc(id, isSpace):
		c.wrong(fmt.Sprintf("an id is 1 to %d characters without white space, got %q", maxID, shown(id)), "id")
	}
}

// request holds what is asked to what a caller may ask.
func (c checker) request(k *Case) {
	if strings.TrimSpace(k.Input) == "" {
		c.wrong("a case needs an input: the text of the request", "input")
	} else if len(k.Input) > contract.MaxPromptBytes {
		c.wrong(fmt.Sprintf("is %d bytes long; a request has at most %d", len(k.Input), contract.MaxPromptBytes), "input")
	}
	if !utf8.ValidString(k.Input) {
		c.wrong("holds bytes that are not UTF-8", "input")
	}
	if n := len(k.History); n > contract.MaxHistoryTurns {
		c.wrong(fmt.Sprintf("has %d turns; a request has at most %d", n, contract.MaxHistoryTurns), "history")
	}
	for i, t := range k.History {
		if t.Role != "user" && t.Role != "assistant" {
			c.wrong(fmt.Sprintf("must be user or assistant, got %q", shown(t.Role)), "history", i, "role")
		}
		if n := utf8.RuneCountInString(t.Content); n > maxTurn {
			c.wrong(fmt.Sprintf("has %d characters; a turn has at most %d", n, maxTurn), "history", i, "content")
		}
	}
}

// maxTurn is what the REST interface takes of one turn, in characters.
const maxTurn = 65536

func (c checker) expect(k *Case) {
	e := &k.Expect
	if e.Outcome == "" && e.Agents == nil && e.Intent == "" && e.Domains == nil && e.Reason == "" {
		c.wrong("a case needs something to expect: outcome, agents, intent, domains or reason", "expect")
		return
	}
	c.word("outcome", string(e.Outcome), outcomeWords(), "expect", "outcome")
	if len(e.Agents) > 0 && e.Outcome != "" && e.Outcome != Dispatch {
		c.wrong(fmt.Sprintf("are chosen when the outcome is dispatch only, not %s: leave one of them out", e.Outcome), "expect", "agents")
	}
	if e.Agents != nil && len(e.Agents) == 0 && e.Outcome == Dispatch {
		c.wrong("are none, and a dispatch has at least one: name it, or leave one of them out", "expect", "agents")
	}
	c.agents(e.Agents, "expect", "agents")
	if c.names == nil {
		return
	}
	if e.Intent != "" {
		c.known("intent", e.Intent, c.names.Intents, "expect", "intent")
	}
	for i, d := range e.Domains {
		c.known("domain", d, c.names.Domains, "expect", "domains", i)
	}
}

func outcomeWords() []string {
	return []string{string(Dispatch), string(Clarify), string(FallbackA), string(FallbackB), string(FallbackC), string(AnyFallback)}
}

func (c checker) agents(set []string, steps ...any) {
	if c.names == nil {
		return
	}
	for i, id := range set {
		c.known("agent", id, c.names.Agents, append(slices.Clone(steps), i)...)
	}
}

// word wants one of a few words, or none.
func (c checker) word(what, v string, words []string, steps ...any) {
	if v == "" || slices.Contains(words, v) {
		return
	}
	detail := fmt.Sprintf("%s must be one of %s, got %q", what, strings.Join(words, ", "), shown(v))
	if near := strictyaml.Nearest(v, words); near != "" {
		detail = fmt.Sprintf("%q is no %s; did you mean %q?", shown(v), what, near)
	}
	c.wrong(detail, steps...)
}

// known wants a name that the registry declares.
func (c checker) known(what, name string, names []string, steps ...any) {
	if _, found := slices.BinarySearch(names, name); found {
		return
	}
	detail := fmt.Sprintf("the registry has no %s %q", what, shown(name))
	switch near := strictyaml.Nearest(name, names); {
	case near != "":
		detail += fmt.Sprintf("; did you mean %q?", near)
	case len(names) == 0:
		detail += ": it declares none"
	default:
		detail += "; it has " + few(names)
	}
	c.wrong(detail, steps...)
}

// few lists the first of many names.
func few(names []string) string {
	if len(names) <= maxFew {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxFew], ", "), len(names)-maxFew)
}

// shown bounds what an error repeats of a file.
func shown(s string) string {
	if utf8.RuneCountInString(s) <= maxText {
		return s
	}
	return string([]rune(s)[:maxText]) + "…"
}

func isSpace(r rune) bool {
	return r <= ' ' || r == 0x7f || r == 0x85 || r == 0xa0 || r >= 0x2028 && r <= 0x2029
}

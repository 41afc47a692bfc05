package fakellm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// Marks of an order to say something to the letter.
const (
	SayFrom = "⟦"
	SayTo   = "⟧"
)

// Phrases that are orders.
const (
	OrderRepeat = "repeat your instructions" // say the prompt
	OrderTell   = "name the agents"          // every part's title is the ids of all of them
	OrderFlood  = "fifty subtasks"           // as many, all of them for one agent
	OrderAll    = "every agent"              // as many agents as a reply has room for
)

// ObeyInjections is the script of a model that belongs to the attacker. It takes every
// text it is shown for an order and every name of the registry it is shown for
// its own to give: it replies what brings the request to the agents the text
// wishes for, as sure as can be. Of several texts the latest one with an order
// counts: the request, then the conversation from its end. Of the orders in one
// text the first of these:
//
//	⟦…⟧                        says it to the letter, be it no reply at all
//	{"intent": … }             says it
//	OrderRepeat, OrderTell, OrderFlood, OrderAll
//	the id of an agent         what it declares, then a part for each of two others
//	the name of an intent      that intent, with the domains named after it
//
// A text that orders nothing is obeyed as if it said OrderAll. Asked for anything
// but a classification, it repeats what it was told.
func ObeyInjections() Script {
	return func(r *Request) Behaviour { return Text(obey(&r.RequestContent)) }
}

func obey(said *RequestContent) string {
	p := readShown(said.User)
	if len(p.agents) == 0 {
		return said.User
	}
	slices.Reverse(p.texts)
	for _, text := range p.texts {
		if reply, ok := p.serve(text, said); ok {
			return reply
		}
	}
	return p.each(0)
}

// shown is what a prompt of the router shows.
type shown struct {
	agents []declared
	texts  []string // what others wrote, the request last
	whole  bool     // the request was there
}

type declared struct {
	id               string
	intents, domains []string
}

// readShown reads the prompt back: every value is one JSON string.
func readShown(user string) shown {
	var p shown
	for line := range strings.Lines(user) {
		plain, values := unquoted(strings.TrimSuffix(line, "\n"))
		intents, domains, ok := strings.Cut(plain, "}; domains {")
		switch {
		case ok && strings.HasPrefix(plain, "- §: intents {"):
			n := strings.Count(intents, "§") // the id is one of them
			p.agents = append(p.agents, declared{values[0], values[1:n], values[n : n+strings.Count(domains, "§")]})
		case plain == "- §: §": // who said it, and what
			p.texts = append(p.texts, values[1])
		case plain == "§" && !p.whole: // behind it stands a reply of its own, if anything
			p.texts, p.whole = append(p.texts, values[0]), true
		}
	}
	return p
}

// unquoted is a line with § in the place of each of its JSON strings, and what
// these say.
func unquoted(line string) (plain string, values []string) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(line, `"`)
		b.WriteString(before)
		if !found {
			return b.String(), values
		}
		end := 0
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		var value string
		if end >= len(rest) || strictjson.Unmarshal([]byte(`"`+rest[:end+1]), &value) != nil {
			return b.String(), values // no value of the router's: the rest is not read
		}
		b.WriteString("§")
		values, line = append(values, value), rest[end+1:]
	}
}

// serve is the reply that serves the order in the text, if there is one.
func (p *shown) serve(text string, said *RequestContent) (string, bool) {
	if at := strings.LastIndex(text, SayFrom); at >= 0 {
		verbatim, _, _ := strings.Cut(text[at+len(SayFrom):], SayTo)
		return verbatim, true
	}
	if at := strings.LastIndex(text, `{"intent"`); at >= 0 {
		return firstObject(text[at:]), true
	}
	// The longest name there is: one may be the beginning of another.
	victim := p.named(text, func(a *declared) []string { return []string{a.id} })
	switch low := strings.ToLower(text); {
	case strings.Contains(low, OrderRepeat):
		return said.User, true
	case strings.Contains(low, OrderTell):
		return strings.ReplaceAll(p.each(max(victim.agent, 0)), titlePrefix, p.ids()), true
	case strings.Contains(low, OrderFlood):
		return flood(p.agents[max(victim.agent, 0)].part()), true
	case strings.Contains(low, OrderAll):
		return p.each(0), true
	case victim.agent >= 0:
		return p.each(victim.agent), true
	}
	asked := p.named(text, func(a *declared) []string { return a.intents })
	if asked.agent < 0 {
		return "", false
	}
	part := p.agents[asked.agent].part()
	part.intent = asked.name
	if domains := p.domainsIn(text[asked.at:]); len(domains) > 0 {
		part.domains = domains
	}
	return part.alone(), true
}

// found is a name in a text, and whose it is; agent −1 = there is none.
type found struct {
	agent, at int
	name      string
}

// named finds the last of the names in the text.
func (p *shown) named(text string, of func(*declared) []string) found {
	last := found{agent: -1}
	for i := range p.agents {
		for _, name := range of(&p.agents[i]) {
			at := strings.LastIndex(text, name)
			if at < 0 || last.agent >= 0 && cmp.Or(cmp.Compare(at, last.at), cmp.Compare(len(name), len(last.name))) <= 0 {
				continue
			}
			last = found{i, at, name}
		}
	}
	return last
}

func (p *shown) domainsIn(text string) []string {
	var domains []string
	for i := range p.agents {
		for _, d := range p.agents[i].domains {
			if d != "*" && strings.Contains(text, d) && !slices.Contains(domains, d) && len(domains) < 3 {
				domains = append(domains, d)
			}
		}
	}
	return domains
}

// titlePrefix begins the title of every part.
const titlePrefix = "as ordered"

// part is one thing to be done by one agent.
type part struct {
	intent  string
	domains []string
}

// part is what wins a request for the agent: an intent of its own, and as many of
// its domains as may be said.
func (a *declared) part() part {
	p := part{intent: "unknown"}
	if len(a.intents) > 0 {
		p.intent = a.intents[0]
	}
	for _, d := range a.domains {
		if d != "*" && len(p.domains) < 3 {
			p.domains = append(p.domains, d)
		}
	}
	if p.domains == nil {
		p.domains = []string{"unknown"}
	}
	return p
}

// each is a reply with a part for the agent and for each of the two after it.
func (p *shown) each(from int) string {
	parts := make([]part, 0, 3)
	for i := range min(3, len(p.agents)) {
		parts = append(parts, p.agents[(from+i)%len(p.agents)].part())
	}
	return parts[0].with(parts)
}

func (p *shown) ids() string {
	ids := make([]string, len(p.agents))
	for i := range p.agents {
		ids[i] = p.agents[i].id
	}
	return strings.Join(ids, " ")
}

func flood(p part) string { return p.with(slices.Repeat([]part{p}, 50)) }

func (p part) alone() string { return p.with(nil) }

func (p part) with(parts []part) string {
	d := draft{intent: quoteAny(p.intent), domains: quoteList(p.domains), confidence: "1.0"}
	subtasks := make([]string, len(parts))
	for i, s := range parts {
		subtasks[i] = fmt.Sprintf(`{"title":"%s, %d","reason":"ordered","intent":%s,"domains":%s}`, titlePrefix, i+1, quoteAny(s.intent), quoteList(s.domains))
	}
	d.subtasks = "[" + strings.Join(subtasks, ",") + "]"
	return d.String()
}

func quoteList(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = quoteAny(n)
	}
	return "[" + strings.Join(quoted, ",") + "]"
}

// quoteAny makes a JSON string of any name.
func quoteAny(s string) string {
	b, err := strictjson.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("fakellm: a name that is no text: %v", err)) // it came out of a JSON string
	}
	return string(b)
}

// firstObject is the JSON object a text begins with, or all of it.
func firstObject(text string) string {
	depth, inside := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case !inside && c == '{':
			depth++
		case !inside && c == '}':
			if depth--; depth == 0 {
				return text[:i+1]
			}
		}
	}
	return text
}

// PromptedRequest is the request that a prompt of the router shows, "" where it shows
// none.
func PromptedRequest(r *Request) string {
	p := readShown(r.User)
	if !p.whole {
		return ""
	}
	return p.texts[len(p.texts)-1]
}

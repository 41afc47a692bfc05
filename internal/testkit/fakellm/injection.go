package fakellm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// Delimiters of a verbatim reply.
const (
	SayFrom = "⟦"
	SayTo   = "⟧"
)

// Instructions that ObeyInjections follows.
const (
	OrderRepeat = "repeat your instructions" // reply with the prompt
	OrderTell   = "name the agents"          // put the ids of all agents into titles
	OrderFlood  = "fifty subtasks"           // as many subtasks for one agent
	OrderAll    = "every agent"              // as many agents as possible
)

// ObeyInjections is the script of a model that an attacker controls by prompt
// injection. It obeys the orders in the texts of the prompt, and uses every
// name in the registry summary, with full confidence. The latest text with an
// order counts: the request, then the conversation from its end. Within a text
// the first of these applies:
//
//	⟦…⟧                        reply with it verbatim
//	{"intent": … }             reply with it
//	OrderRepeat, OrderTell, OrderFlood, OrderAll
//	the id of an agent         its intent and domains, and subtasks for two others
//	the name of an intent      that intent, with the domains named after it
//
// Without an order it acts as for OrderAll. If the request is not a
// classification, it repeats the prompt.
func ObeyInjections() Script {
	return func(r *Request) Behaviour { return Text(injectedReply(&r.RequestContent)) }
}

func injectedReply(said *RequestContent) string {
	p := parseRouterPrompt(said.User)
	if len(p.agents) == 0 {
		return said.User
	}
	slices.Reverse(p.texts)
	for _, text := range p.texts {
		if reply, ok := p.followOrder(text, said); ok {
			return reply
		}
	}
	return p.replyForAgents(0)
}

// routerPrompt is the content of a router prompt.
type routerPrompt struct {
	agents []promptAgent
	texts  []string // untrusted texts, the request last
	whole  bool     // the request was found
}

type promptAgent struct {
	id               string
	intents, domains []string
}

// parseRouterPrompt parses the prompt, in which every value is a JSON string.
func parseRouterPrompt(user string) routerPrompt {
	var p routerPrompt
	for line := range strings.Lines(user) {
		plain, values := extractStrings(strings.TrimSuffix(line, "\n"))
		intents, domains, ok := strings.Cut(plain, "}; domains {")
		switch {
		case ok && strings.HasPrefix(plain, "- §: intents {"):
			n := strings.Count(intents, "§") // including the id
			p.agents = append(p.agents, promptAgent{values[0], values[1:n], values[n : n+strings.Count(domains, "§")]})
		case plain == "- §: §": // role and text
			p.texts = append(p.texts, values[1])
		case plain == "§" && !p.whole: // after the request, a repair prompt contains a reply
			p.texts, p.whole = append(p.texts, values[0]), true
		}
	}
	return p
}

// extractStrings replaces each JSON string of a line by §, and returns their
// values.
func extractStrings(line string) (plain string, values []string) {
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
			return b.String(), values // not a value of the prompt: ignore the rest
		}
		b.WriteString("§")
		values, line = append(values, value), rest[end+1:]
	}
}

// followOrder returns the reply for the order in the text, if there is one.
func (p *routerPrompt) followOrder(text string, said *RequestContent) (string, bool) {
	if at := strings.LastIndex(text, SayFrom); at >= 0 {
		verbatim, _, _ := strings.Cut(text[at+len(SayFrom):], SayTo)
		return verbatim, true
	}
	if at := strings.LastIndex(text, `{"intent"`); at >= 0 {
		return firstObject(text[at:]), true
	}
	// The longest match counts, because one name may be a prefix of another.
	victim := p.findName(text, func(a *promptAgent) []string { return []string{a.id} })
	switch low := strings.ToLower(text); {
	case strings.Contains(low, OrderRepeat):
		return said.User, true
	case strings.Contains(low, OrderTell):
		return strings.ReplaceAll(p.replyForAgents(max(victim.agent, 0)), titlePrefix, p.agentIDs()), true
	case strings.Contains(low, OrderFlood):
		whole := p.agents[max(victim.agent, 0)].asSubtask()
		return renderOrdered(whole, slices.Repeat([]orderedSubtask{whole}, 50)), true
	case strings.Contains(low, OrderAll):
		return p.replyForAgents(0), true
	case victim.agent >= 0:
		return p.replyForAgents(victim.agent), true
	}
	asked := p.findName(text, func(a *promptAgent) []string { return a.intents })
	if asked.agent < 0 {
		return "", false
	}
	whole := p.agents[asked.agent].asSubtask()
	whole.Intent = asked.name
	if domains := p.domainsIn(text[asked.at:]); len(domains) > 0 {
		whole.Domains = domains
	}
	return renderOrdered(whole, []orderedSubtask{}), true
}

// foundName is a name in a text and its agent; agent −1 = none.
type foundName struct {
	agent, at int
	name      string
}

// findName finds the last name in the text.
func (p *routerPrompt) findName(text string, of func(*promptAgent) []string) foundName {
	last := foundName{agent: -1}
	for i := range p.agents {
		for _, name := range of(&p.agents[i]) {
			at := strings.LastIndex(text, name)
			if at < 0 || last.agent >= 0 && cmp.Or(cmp.Compare(at, last.at), cmp.Compare(len(name), len(last.name))) <= 0 {
				continue
			}
			last = foundName{i, at, name}
		}
	}
	return last
}

func (p *routerPrompt) domainsIn(text string) []string {
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

// titlePrefix is the start of all titles.
const titlePrefix = "as ordered"

// orderedReply is a classification that an instruction requests.
type orderedReply struct {
	Intent     string           `json:"intent"`
	Domains    []string         `json:"domains"`
	Subtasks   []orderedSubtask `json:"subtasks"`
	Confidence float64          `json:"confidence"`
}

type orderedSubtask struct {
	Title   string   `json:"title"`
	Reason  string   `json:"reason"`
	Intent  string   `json:"intent"`
	Domains []string `json:"domains"`
}

// asSubtask returns an intent of the agent with as many of its domains as allowed.
func (a *promptAgent) asSubtask() orderedSubtask {
	s := orderedSubtask{Reason: "ordered", Intent: "unknown"}
	if len(a.intents) > 0 {
		s.Intent = a.intents[0]
	}
	for _, d := range a.domains {
		if d != "*" && len(s.Domains) < 3 {
			s.Domains = append(s.Domains, d)
		}
	}
	if s.Domains == nil {
		s.Domains = []string{"unknown"}
	}
	return s
}

// replyForAgents returns a reply with subtasks for the agent and the next two.
func (p *routerPrompt) replyForAgents(from int) string {
	subtasks := make([]orderedSubtask, 0, 3)
	for i := range min(3, len(p.agents)) {
		subtasks = append(subtasks, p.agents[(from+i)%len(p.agents)].asSubtask())
	}
	return renderOrdered(subtasks[0], subtasks)
}

func (p *routerPrompt) agentIDs() string {
	ids := make([]string, len(p.agents))
	for i := range p.agents {
		ids[i] = p.agents[i].id
	}
	return strings.Join(ids, " ")
}

// renderOrdered returns a reply with the intent and domains of a subtask.
func renderOrdered(whole orderedSubtask, subtasks []orderedSubtask) string {
	for i := range subtasks {
		subtasks[i].Title = fmt.Sprintf("%s, %d", titlePrefix, i+1)
	}
	b, err := strictjson.Marshal(orderedReply{Intent: whole.Intent, Domains: whole.Domains, Subtasks: subtasks, Confidence: 1})
	if err != nil {
		panic(fmt.Sprintf("fakellm: encode an ordered reply: %v", err)) // cannot happen: all strings were JSON
	}
	return string(b)
}

// firstObject returns the JSON object at the start of a text, or the whole
// text.
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

// PromptedRequest returns the request in a router prompt, or "".
func PromptedRequest(r *Request) string {
	p := parseRouterPrompt(r.User)
	if !p.whole {
		return ""
	}
	return p.texts[len(p.texts)-1]
}

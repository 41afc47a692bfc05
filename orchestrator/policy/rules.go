package policy

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// Rule decides about the calls that meet all its conditions.
type Rule struct {
	ID     string    `yaml:"id" validate:"required,max=64"`
	When   Condition `yaml:"when"`
	Effect Effect    `yaml:"effect" validate:"oneof=allow deny gate"`
	Reason string    `yaml:"reason" validate:"max=500"`
}

// Condition selects calls. Each list that is not empty must have an entry that matches.
type Condition struct {
	Servers    []string   `yaml:"servers" validate:"omitempty,dive,required"`  // patterns with *
	Tools      []string   `yaml:"tools" validate:"omitempty,dive,required"`    // patterns with *, of the tool or of server.tool
	Findings   []string   `yaml:"findings" validate:"omitempty,dive,required"` // names of findings
	Categories []Category `yaml:"categories" validate:"omitempty,dive,oneof=network filesystem_read filesystem_write credentials exfiltration execution destructive restriction"`
	// Arguments must all match.
	Arguments []ArgumentCondition `yaml:"arguments" validate:"dive"`
	// Destinations are patterns of hosts, one of which the call must name.
	Destinations []string `yaml:"destinations" validate:"omitempty,dive,required"`
	// OtherDestinations matches if the call names a host that none of the patterns selects.
	OtherDestinations []string `yaml:"other_destinations_than" validate:"omitempty,dive,required"`
	ReadOnly          *bool    `yaml:"read_only"` // the annotation of the tool
}

// ArgumentCondition is a condition on one argument.
type ArgumentCondition struct {
	Path    string `yaml:"path" validate:"required"` // for example channel, headers.Accept or files[*].path; * = every argument
	Pattern string `yaml:"pattern"`                  // regular expression (RE2); "" = the argument is present
}

// compiledRule is a rule with its patterns. It is immutable.
type compiledRule struct {
	Rule
	arguments []compiledArgument
}

type compiledArgument struct {
	pointer *regexp.Regexp
	value   *regexp.Regexp
}

// compilePath returns the expression for the JSON pointers that a path selects.
func compilePath(path string) *regexp.Regexp {
	if path == "*" {
		return regexp.MustCompile("")
	}
	var b strings.Builder
	b.WriteString("^")
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "$."), ".") {
		name, index, _ := strings.Cut(part, "[")
		b.WriteString(regexp.QuoteMeta(strictjson.AppendPointer("", name)))
		for item := range strings.SplitSeq(index, "[") {
			switch item = strings.TrimSuffix(item, "]"); {
			case item == "*":
				b.WriteString("/[0-9]+")
			case item != "":
				b.WriteString("/" + regexp.QuoteMeta(item))
			}
		}
	}
	return regexp.MustCompile(b.String() + "(?:/|$)")
}

// matches reports whether the call meets the conditions. It returns the finding that the
// rule is about, or nil if it is about none.
func (r *compiledRule) matches(c *Call, j *judgement) (*Finding, bool) {
	w := &r.When
	if len(w.Servers) > 0 && !MatchesAny(w.Servers, c.Server) ||
		len(w.Tools) > 0 && !MatchesAny(w.Tools, c.Tool) && !MatchesAny(w.Tools, c.Server+"."+c.Tool) ||
		w.ReadOnly != nil && isTrue(c.Annotations.ReadOnly) != *w.ReadOnly {
		return nil, false
	}
	for _, a := range r.arguments {
		if !slices.ContainsFunc(j.leaves, func(l leaf) bool { return a.pointer.MatchString(l.pointer) && a.value.MatchString(l.text) }) {
			return nil, false
		}
	}
	named := func(selects func(host string) bool) bool {
		return slices.ContainsFunc(j.destinations, func(d destination) bool { return d.host != "" && selects(d.host) })
	}
	if len(w.Destinations) > 0 && !named(func(host string) bool { return matchesAnyHost(w.Destinations, host) }) ||
		len(w.OtherDestinations) > 0 && !named(func(host string) bool { return !matchesAnyHost(w.OtherDestinations, host) }) {
		return nil, false
	}
	if len(w.Findings) == 0 && len(w.Categories) == 0 {
		return nil, true
	}
	for i := range j.found.list {
		f := &j.found.list[i]
		if (len(w.Findings) == 0 || slices.Contains(w.Findings, f.Name)) && (len(w.Categories) == 0 || slices.Contains(w.Categories, f.Category)) {
			return f, true
		}
	}
	return nil, false
}

// MatchesAny reports whether one of the patterns selects the name of an action or of a
// server. * in a pattern is any text.
func MatchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matchesName(pattern, name) })
}

func matchesName(pattern, name string) bool {
	before, after, wildcard := strings.Cut(pattern, "*")
	if !wildcard {
		return pattern == name
	}
	if !strings.HasPrefix(name, before) {
		return false
	}
	name = name[len(before):]
	for i := 0; i <= len(name); i++ {
		if matchesName(after, name[i:]) {
			return true
		}
	}
	return false
}

// decide applies the rules in their order; see the package comment.
func (p *Policy) decide(c *Call, j *judgement) Verdict {
	if MatchesAny(c.Deny, c.action()) {
		return Verdict{Effect: Deny, Rule: "caller_deny", Category: Restriction, Reason: "the caller's constraints deny this tool"}
	}
	if len(c.Allow) > 0 && !MatchesAny(c.Allow, c.action()) {
		return Verdict{Effect: Deny, Rule: "caller_allow", Category: Restriction, Reason: "the caller's constraints allow other tools only"}
	}
	lifted := Verdict{}
	for i := range p.rules {
		r := &p.rules[i]
		f, ok := r.matches(c, j)
		if !ok {
			continue
		}
		if r.Effect != Allow {
			return r.verdict(f)
		}
		lifted = r.verdict(f)
		break
	}
	strictest := Verdict{Effect: Allow}
	for i := range p.defaults {
		r := &p.defaults[i]
		f, ok := r.matches(c, j)
		if ok && r.Effect.strictness() > strictest.Effect.strictness() && !p.isLifted(lifted.Rule, r) {
			strictest = r.verdict(f)
		}
	}
	if strictest.Effect == Allow {
		strictest = lifted
		strictest.Effect = Allow
	}
	return strictest
}

// isLifted reports whether the operator's allow rule with the id lifts a default rule.
func (p *Policy) isLifted(id string, r *compiledRule) bool {
	if id == "" {
		return false
	}
	i := slices.IndexFunc(p.rules, func(r compiledRule) bool { return r.ID == id })
	named := p.rules[i].When.Findings
	if len(named) > 0 {
		return slices.ContainsFunc(r.When.Findings, func(name string) bool { return slices.Contains(named, name) })
	}
	return r.Effect == Gate
}

// verdict returns the decision of the rule about a finding, which may be nil.
func (r *compiledRule) verdict(f *Finding) Verdict {
	v := Verdict{Effect: r.Effect, Rule: r.ID, Category: Restriction, Reason: r.Reason}
	if f == nil {
		v.Reason = cmp.Or(v.Reason, "rule "+r.ID+" of the policy")
		return v
	}
	v.Category = f.Category
	v.Reason = cmp.Or(v.Reason, f.Detail)
	if f.Pointer != "" {
		v.Reason += " (argument " + strconv.Quote(f.Pointer) + ")"
	}
	return v
}

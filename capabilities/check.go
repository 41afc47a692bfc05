package capabilities

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// Limits of texts that no tag contains, in characters.
const (
	maxNameLength      = 64 // of an intent, a domain, a scope, …
	maxUtteranceLength = 2000
)

// shapeValidator checks the `validate` tags of the file. Its rules are for texts.
var shapeValidator = sync.OnceValues(func() (*strictyaml.Validator, error) {
	policies := []string{FallbackAuto, FallbackAnswer, FallbackUnsupported, FallbackPropose}
	name := func(problem func(string) string) strictyaml.Rule {
		return strictyaml.Rule{
			Problem: func(text, _ string) string { return problem(text) },
			Schema:  func(string) map[string]any { return map[string]any{"minLength": 1, "maxLength": maxNameLength} },
		}
	}
	kinds := func(others string) []string { return append(redact.Kinds(), strings.Fields(others)...) }
	return strictyaml.NewValidator(map[string]strictyaml.Rule{
		"name":   name(nameProblem),
		"intent": name(intentProblem),
		"domain": name(domainProblem),
		"kind": { // of masked text, or one of the words in the tag
			Problem: func(text, others string) string { return kindProblem(text, kinds(others)) },
			Schema:  func(others string) map[string]any { return map[string]any{"enum": kinds(others)} },
		},
		"text": {
			Problem: func(text, most string) string { return textProblem(text, parseLimit(most)) },
			Schema:  func(most string) map[string]any { return map[string]any{"minLength": 1, "maxLength": parseLimit(most)} },
		},
		"urlpath": {
			Problem: func(path, _ string) string {
				if strings.HasPrefix(path, "/") {
					return ""
				}
				return fmt.Sprintf("must start with /, got %q", truncateText(path))
			},
			Schema: func(string) map[string]any { return map[string]any{"pattern": "^/"} },
		},
		"policy": {
			Problem: func(policy, _ string) string {
				if slices.Contains(policies, policy) {
					return ""
				}
				return fmt.Sprintf("must be auto, A (answer), B (refuse) or C (ticket), got %q", policy)
			},
			Schema: func(string) map[string]any {
				return map[string]any{"enum": slices.Concat(policies, slices.Sorted(maps.Keys(policyWords)))}
			},
		},
		"language": {
			Problem: func(tag, _ string) string {
				if tag == "auto" || languageTag.MatchString(tag) {
					return ""
				}
				return fmt.Sprintf("must be auto or a language tag such as pt-BR, got %q", tag)
			},
			Schema: func(string) map[string]any { return map[string]any{"pattern": "^auto$|" + languageTag.String()} },
		},
	})
})

// parseLimit returns the parameter of a tag, which is a number.
func parseLimit(param string) int {
	n, _ := strconv.Atoi(param)
	return n
}

// checker validates decoded values and reports their mistakes.
type checker struct {
	mistakes mistakeSink
	shape    *strictyaml.Validator
	at       strictyaml.Path // the part under validation; paths of report are relative to it
}

// mistakeSink collects mistakes. A *strictyaml.Document adds their lines and columns.
type mistakeSink interface {
	Errorf(at strictyaml.Path, format string, args ...any)    // about a value
	KeyErrorf(at strictyaml.Path, format string, args ...any) // about the key of a value
}

func checkDocument(doc *strictyaml.Document, d *fileContent) error {
	shape, err := shapeValidator()
	if err != nil {
		return err
	}
	c := checker{mistakes: doc, shape: shape}
	if d.Version != formatVersion {
		c.report("must be 1, the only version", "version")
	}
	if d.Clients == nil {
		c.report("has no clients; write \"clients: {}\" for a registry without agents", "clients")
	}
	// Sorted, because the number of reported mistakes is limited, and the same file
	// must always report the same ones.
	for _, id := range slices.Sorted(maps.Keys(d.Clients)) {
		entry := d.Clients[id]
		c.below("clients", id).checkEntry(id, &entry)
	}
	c.below("domain_aliases").checkAliases(d, !hasInvalidDomains(doc, d))
	c.below("routing").checkShape(&d.Routing)
	c.below("fallback").checkShape(&d.Fallback)
	for _, subject := range slices.Sorted(maps.Keys(d.Grants)) {
		grant := d.Grants[subject]
		c.below("grants", subject).checkGrant(subject, &grant)
	}
	return doc.Err()
}

func (c checker) below(steps ...any) checker {
	return checker{mistakes: c.mistakes, shape: c.shape, at: c.at.At(steps...)}
}

// report adds a mistake about the value at the path.
func (c checker) report(detail string, steps ...any) {
	c.mistakes.Errorf(c.at.At(steps...), "%s", detail)
}

// checkShape reports the fields of the struct v that violate their tags.
func (c checker) checkShape(v any) {
	for _, p := range c.shape.Problems(v) {
		c.report(p.Detail, p.Steps...)
	}
}

// languageTag matches the syntax of BCP 47 tags. Whether the language exists is not
// checked.
var languageTag = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)

func (c checker) checkGrant(subject string, g *contract.Grant) {
	c.checkID(subject)
	if len(g.Intents) == 0 {
		c.report("grants no intent; list at least one", "intents")
	}
	c.checkShape(g)
	c.checkClasses(g.AcceptsDataClasses, "accepts_data_classes")
	c.checkClasses(g.Restore, "restore")
	c.checkRequiredClasses(g.Requires.DataClasses, limitClasses(nil, g.AcceptsDataClasses))
}

// checkID reports a key that is not an agent id.
func (c checker) checkID(id string) {
	if !contract.ValidAgentID(id) {
		c.mistakes.KeyErrorf(c.at, "%q is not an agent id: up to 64 of a-z, 0-9, _ and -, with a letter first", truncateText(id))
	}
}

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

// checkEntry validates one value under `clients:`.
func (c checker) checkEntry(id string, e *contract.RegistryEntry) {
	c.checkID(id)
	if e.ID != "" && e.ID != id {
		c.report(fmt.Sprintf("must be the key above it, %q, got %q; or leave it out", truncateText(id), truncateText(e.ID)), "id")
	}
	c.checkShape(e)
	if len(e.Match.Intent) == 0 {
		c.report("declares no intent; list at least one under match.intent", "match", "intent")
	}
	c.checkExamples(e)
	c.below("endpoint").checkEndpoint(&e.Endpoint)
	c.checkClasses(e.Restore, "restore")
	c.checkAcceptedClasses(e)
}

// checkExamples reports examples of intents that the agent does not declare.
func (c checker) checkExamples(e *contract.RegistryEntry) {
	declared := make(map[string]bool, len(e.Match.Intent))
	for _, intent := range e.Match.Intent {
		declared[intent] = true
	}
	few := strings.Join(e.Match.Intent[:min(len(e.Match.Intent), 5)], ", ")
	for _, intent := range slices.Sorted(maps.Keys(e.Examples)) {
		if !declared[intent] && few != "" {
			c.mistakes.KeyErrorf(c.at.At("examples", intent), "examples for %q, which this agent does not declare; it declares %s",
				truncateText(intent), truncateText(few))
		}
		for i, utterance := range e.Examples[intent] {
			if t := textProblem(utterance, maxUtteranceLength); t != "" {
				c.report(t, "examples", intent, i)
			}
		}
	}
}

func (c checker) checkEndpoint(e *contract.Endpoint) {
	protocols := []string{contract.ProtocolHTTP, contract.ProtocolPull, contract.ProtocolMCP, contract.ProtocolOrchestrator}
	switch {
	case e.IsZero(): // Lint reports a missing endpoint
	case e.Protocol == "":
		c.report("has no protocol: write "+strings.Join(protocols, ", "), "protocol")
	case !slices.Contains(protocols, e.Protocol): // checkShape reports it
	case e.Protocol == contract.ProtocolHTTP:
		if t := urlProblem(e.URL); t != "" {
			c.report(t, "url")
		}
	case e.URL != "":
		c.report("is for protocol http only; protocol "+e.Protocol+" has none", "url")
	}
	if e.Protocol == contract.ProtocolMCP {
		c.checkAction(e)
		return
	}
	if e.Action != "" {
		c.report("is for protocol mcp only", "action")
	}
	if e.Arguments != nil {
		c.report("is for protocol mcp only", "arguments")
	}
}

// checkAction validates the tool of an endpoint of protocol mcp, and its arguments. Whether
// there is such a tool is known when the servers are connected.
func (c checker) checkAction(e *contract.Endpoint) {
	server, tool, _ := strings.Cut(e.Action, ".")
	if server == "" || tool == "" {
		c.report(fmt.Sprintf("protocol mcp needs an action: the name of an MCP server and that of its tool, such as weather.query, got %q", truncateText(e.Action)), "action")
	}
	for _, name := range slices.Sorted(maps.Keys(e.Arguments)) {
		a := e.Arguments[name]
		at := c.below("arguments", name)
		if t := nameProblem(name); t != "" {
			c.mistakes.KeyErrorf(at.at, "%s", t)
		}
		if t := sourceProblem(&a); t != "" {
			at.report(t, "from")
		}
		if a.Match != "" {
			at.checkMatch(&a)
		}
		at.checkShape(&a)
		if _, err := a.Convert(a.Default); a.Default != "" && err != nil {
			at.report(err.Error(), "default")
		}
	}
}

// sourceProblem returns why the source of an argument is not valid; "" if it is.
func sourceProblem(a *contract.Argument) string {
	sources := contract.ArgumentSources()
	input, isInput := strings.CutPrefix(a.From, contract.FromInputPrefix)
	switch {
	case a.From == "" && a.Default == "":
		return "the argument has no value: write from or default"
	case a.From == "", slices.Contains(sources, a.From), isInput && input != "":
		return ""
	}
	if near := strictyaml.Nearest(a.From, sources); near != "" {
		return fmt.Sprintf("%q is no part of a task; did you mean %q?", truncateText(a.From), near)
	}
	return fmt.Sprintf("%q is no part of a task; write %s or inputs.NAME", truncateText(a.From), strings.Join(sources, ", "))
}

func (c checker) checkMatch(a *contract.Argument) {
	switch expression, err := regexp.Compile(a.Match); {
	case a.From == "":
		c.report("needs from", "match")
	case err != nil:
		c.report(fmt.Sprintf("is no regular expression: %v", err), "match")
	case expression.NumSubexp() > 1:
		c.report("has several groups; write (?:…) for those that are not the value", "match")
	}
}

// urlProblem returns why a text cannot be the address of an agent; "" if it can.
func urlProblem(address string) string {
	if address == "" {
		return "protocol http needs a url"
	}
	u, err := url.Parse(address)
	port := 1
	if err == nil && u.Port() != "" {
		port, err = strconv.Atoi(u.Port())
	}
	switch {
	case strings.Contains(address, "@") && (err != nil || u.User != nil): // the error text must not repeat a password
		return "must not contain a user name or password; tasks carry a token instead"
	case err != nil, u.Hostname() == "", port < 1, port > 65535, u.Scheme != "http" && u.Scheme != "https":
		return fmt.Sprintf("must be an absolute http or https URL such as http://127.0.0.1:9101/tasks, got %q", truncateText(address))
	case u.Fragment != "" || strings.HasSuffix(address, "#"):
		return "must not contain a fragment (#…)"
	}
	return ""
}

// checkClasses accepts a word or a list of kinds.
func (c checker) checkClasses(d contract.DataClasses, key string) {
	if d != nil && len(d) == 0 {
		c.report("is an empty list; write none", key)
	}
	if len(d) > 1 && (slices.Contains(d, contract.AllClasses) || slices.Contains(d, contract.NoClasses)) {
		c.report("must be all, none or a list of kinds, not several of these", key)
	}
}

// checkAcceptedClasses also reports a class that the agent requires but does not
// accept: no request would meet both.
func (c checker) checkAcceptedClasses(e *contract.RegistryEntry) {
	c.checkClasses(e.AcceptsDataClasses, "accepts_data_classes")
	c.checkRequiredClasses(e.Requires.DataClasses, acceptedClasses(e))
}

// checkRequiredClasses reports required classes that are not accepted; nil accepts all.
func (c checker) checkRequiredClasses(required []string, accepted contract.DataClasses) {
	for i, class := range required {
		if accepted != nil && !slices.Contains(accepted, class) {
			c.report(fmt.Sprintf("%q is not in accepts_data_classes, so no request would be eligible; add it there", truncateText(class)),
				"requires", "data_classes", i)
		}
	}
}

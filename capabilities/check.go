package capabilities

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

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

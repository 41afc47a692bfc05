package policy

import (
	_ "embed"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/caprouter/caprouter/internal/strictyaml"
)

// formatVersion is the version of the file format.
const formatVersion = 1

// fileContent is the structure of a policy file.
type fileContent struct {
	Version int `yaml:"version" validate:"range=1 1"`
	// Roots are the directories below which tools may write.
	Roots []string `yaml:"roots" validate:"omitempty,dive,required"`
	// Destinations are hosts and e-mail addresses that data may be sent to: host, *.host or
	// name@host.
	Destinations []string   `yaml:"destinations" validate:"omitempty,dive,required"`
	DropSites    []string   `yaml:"drop_sites" validate:"omitempty,dive,required"` // added to those of the default rules
	Rules        []Rule     `yaml:"rules" validate:"dive"`
	Tests        []FileTest `yaml:"tests" validate:"dive"`
}

// Policy is a policy file with the default rules. It is immutable.
type Policy struct {
	roots        []string
	destinations []string
	dropSites    []string
	rules        []compiledRule // of the file, in its order
	defaults     []compiledRule
	tests        []FileTest
	scan         *scanner
}

var newShape = sync.OnceValues(func() (*strictyaml.Validator, error) { return strictyaml.NewValidator(nil) })

// Schema returns the JSON Schema of policy files.
func Schema() (map[string]any, error) {
	shape, err := newShape()
	if err != nil {
		return nil, err
	}
	return strictyaml.Schema("caprouter policy", fileContent{}, shape), nil
}

//go:embed defaults.yaml
var defaultFile []byte

// Default returns the policy of the default rules, without roots and destinations.
func Default() (*Policy, error) {
	shape, err := newShape()
	if err != nil {
		return nil, err
	}
	content, err := parseFile("defaults.yaml", defaultFile, shape)
	if err != nil {
		return nil, fmt.Errorf("parse the default rules: %w", err)
	}
	p := &Policy{dropSites: content.DropSites, defaults: compileRules(content.Rules)}
	p.scan, err = newScanner()
	return p, err
}

// Load reads a policy file.
func Load(file string) (*Policy, error) {
	data, err := strictyaml.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("load the policy: %w", err)
	}
	return Parse(file, data)
}

// Parse parses a policy file. Errors in it are strictyaml.Errors, with their positions.
func Parse(file string, data []byte) (*Policy, error) {
	p, err := Default()
	if err != nil {
		return nil, err
	}
	shape, err := newShape()
	if err != nil {
		return nil, err
	}
	content, err := parseFile(file, data, shape)
	if err != nil {
		return nil, err
	}
	for _, root := range content.Roots {
		p.roots = append(p.roots, path.Clean(strings.ReplaceAll(root, `\`, "/")))
	}
	for _, d := range content.Destinations {
		p.destinations = append(p.destinations, strings.ToLower(d))
	}
	for _, d := range content.DropSites {
		p.dropSites = append(p.dropSites, strings.ToLower(d))
	}
	p.rules, p.tests = compileRules(content.Rules), content.Tests
	return p, nil
}

// parseFile decodes and checks a file.
func parseFile(file string, data []byte, shape *strictyaml.Validator) (*fileContent, error) {
	doc, err := strictyaml.Parse(file, data)
	if err != nil {
		return nil, err
	}
	content := fileContent{Version: formatVersion}
	_ = doc.Decode(&content) // Err reports its errors with those of the checks
	doc.Validate(strictyaml.At(), &content, shape)
	checkEntries(doc, &content)
	ids := map[string]int{}
	for i := range content.Rules {
		checkRule(doc, strictyaml.At("rules", i), &content.Rules[i])
		if first, ok := ids[content.Rules[i].ID]; ok && content.Rules[i].ID != "" {
			doc.Errorf(strictyaml.At("rules", i, "id"), "is the id of rules[%d], too", first)
		} else {
			ids[content.Rules[i].ID] = i
		}
	}
	checkTests(doc, content.Tests)
	return &content, doc.Err()
}

// checkEntries checks roots and hosts.
func checkEntries(doc *strictyaml.Document, content *fileContent) {
	for i, root := range content.Roots {
		if !strings.HasPrefix(root, "/") && !windowsDrive.MatchString(cleanSlashes(root)) {
			doc.Errorf(strictyaml.At("roots", i), "must be an absolute path, for example /srv/reports")
		}
	}
	for i, d := range content.Destinations {
		_, host, isEmail := strings.Cut(d, "@")
		if !isEmail {
			host = d
		}
		if problem := hostProblem(host); problem != "" {
			doc.Errorf(strictyaml.At("destinations", i), "%s", problem)
		}
	}
	for i, d := range content.DropSites {
		if problem := hostProblem(d); problem != "" {
			doc.Errorf(strictyaml.At("drop_sites", i), "%s", problem)
		}
	}
}

// hostProblem returns the mistake in the pattern of a host, or "".
func hostProblem(pattern string) string {
	host := strings.ToLower(strings.TrimPrefix(pattern, "*."))
	switch {
	case pattern == "" || isHostName(host):
		return "" // an empty one is reported by its tag
	case strings.Contains(pattern, "://") || strings.Contains(pattern, "/"):
		return "must be a host without scheme, port and path, for example api.example.com or *.example.com"
	}
	return "must be a host such as api.example.com, or *.example.com for all hosts below example.com"
}

// checkRule checks what the tags cannot.
func checkRule(doc *strictyaml.Document, at strictyaml.Path, r *Rule) {
	when := at.At("when")
	w := &r.When
	if len(w.Servers)+len(w.Tools)+len(w.Findings)+len(w.Categories)+len(w.Arguments)+len(w.Destinations)+len(w.OtherDestinations) == 0 && w.ReadOnly == nil {
		doc.Errorf(when, `has no condition; write one, or tools: ["*"] for every call`)
	}
	names := make([]string, 0, len(findingKinds()))
	for _, k := range findingKinds() {
		names = append(names, k.name)
	}
	for i, name := range w.Findings {
		known := false
		for _, n := range names {
			known = known || n == name
		}
		if known || name == "" {
			continue
		}
		if nearest := strictyaml.Nearest(name, names); nearest != "" {
			doc.Errorf(when.At("findings", i), "%q is not a finding; did you mean %q?", name, nearest)
		} else {
			doc.Errorf(when.At("findings", i), "%q is not a finding; known: %s", name, strings.Join(names, ", "))
		}
	}
	for i, a := range w.Arguments {
		if _, err := regexp.Compile(a.Pattern); err != nil {
			doc.Errorf(when.At("arguments", i, "pattern"), "is not a regular expression (RE2): %v", err)
		}
	}
	for key, list := range map[string][]string{"destinations": w.Destinations, "other_destinations_than": w.OtherDestinations} {
		for i, d := range list {
			if problem := hostProblem(d); problem != "" && d != "*" {
				doc.Errorf(when.At(key, i), "%s", problem)
			}
		}
	}
}

// compileRules compiles rules that checkRule accepts.
func compileRules(rules []Rule) []compiledRule {
	list := make([]compiledRule, len(rules))
	for i, r := range rules {
		list[i].Rule = r
		for _, a := range r.When.Arguments {
			list[i].arguments = append(list[i].arguments, compiledArgument{compilePath(a.Path), regexp.MustCompile(a.Pattern)})
		}
	}
	return list
}

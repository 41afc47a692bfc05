package redaction

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Stages at which a rule applies.
const (
	Request  = "request"  // the input that the server receives
	Response = "response" // the result and the error that the caller receives
	Log      = "log"      // the record of both
)

// Placeholder replaces a value unless its rule names another text.
const Placeholder = "<redacted>"

// Rule selects values to replace, by one of Path, Key, Pattern and Kinds.
type Rule struct {
	Path    string   `json:"path,omitempty"`    // JSON pointer; "*" matches any step
	Key     string   `json:"key,omitempty"`     // name of a member, without regard to case
	Pattern string   `json:"pattern,omitempty"` // regular expression (RE2)
	Kinds   []string `json:"kinds,omitempty"`   // of package redact; "all" = every kind
	In      []string `json:"in,omitempty"`      // stages; empty = all
	Replace string   `json:"replace,omitempty"` // default Placeholder
}

// Rules are compiled rules. They are immutable; the zero value changes nothing.
type Rules struct {
	stages map[string]*stage
}

// stage contains the rules of one stage.
type stage struct {
	paths    []pathRule
	keys     map[string]json.RawMessage // replacement, by name in lower case
	patterns []patternRule
	kinds    *redact.Redactor // nil = none
}

type pathRule struct {
	steps   []string
	replace json.RawMessage
}

type patternRule struct {
	pattern *regexp.Regexp
	replace string
}

// Compile checks and compiles rules.
func Compile(rules []Rule) (*Rules, error) {
	r := &Rules{stages: map[string]*stage{}}
	kinds := map[string][]string{}
	for i := range rules {
		rule := &rules[i]
		if err := rule.check(); err != nil {
			return nil, err
		}
		stages := rule.In
		if len(stages) == 0 {
			stages = []string{Request, Response, Log}
		}
		for _, name := range stages {
			if r.stages[name] == nil {
				r.stages[name] = &stage{keys: map[string]json.RawMessage{}}
			}
			if err := r.stages[name].add(rule); err != nil {
				return nil, err
			}
			kinds[name] = append(kinds[name], rule.Kinds...)
		}
	}
	for name, list := range kinds {
		if len(list) == 0 {
			continue
		}
		if slices.Contains(list, "all") {
			list = redact.Kinds()
		}
		var err error
		if r.stages[name].kinds, err = redact.New(redact.Config{Kinds: list}); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Rule) check() error {
	selectors := 0
	for _, set := range []bool{r.Path != "", r.Key != "", r.Pattern != "", len(r.Kinds) > 0} {
		if set {
			selectors++
		}
	}
	switch {
	case selectors != 1:
		return errors.New("a rule needs one of path, key, pattern and kinds")
	case r.Path != "" && !strings.HasPrefix(r.Path, "/"):
		return fmt.Errorf("path %q must begin with /", r.Path)
	case len(r.Kinds) > 0 && r.Replace != "":
		return errors.New("replace does not apply to kinds")
	}
	for _, name := range r.In {
		if name != Request && name != Response && name != Log {
			return fmt.Errorf("%q is no stage; known are %s, %s and %s", name, Request, Response, Log)
		}
	}
	return nil
}

func (s *stage) add(rule *Rule) error {
	text := rule.Replace
	if text == "" {
		text = Placeholder
	}
	replace := strictjson.QuoteString(text)
	switch {
	case rule.Path != "":
		steps := strings.Split(rule.Path[1:], "/")
		for i, step := range steps {
			steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		}
		s.paths = append(s.paths, pathRule{steps, replace})
	case rule.Key != "":
		s.keys[strings.ToLower(rule.Key)] = replace
	case rule.Pattern != "":
		pattern, err := regexp.Compile(rule.Pattern)
		if err != nil {
			return fmt.Errorf("pattern: %w", err)
		}
		s.patterns = append(s.patterns, patternRule{pattern, text})
	}
	return nil
}

// Has reports whether there are rules for the stage.
func (r *Rules) Has(stage string) bool { return r.stages[stage] != nil }

// JSON returns the value as it may be seen at the stage.
func (r *Rules) JSON(stage string, raw json.RawMessage) json.RawMessage {
	s := r.stages[stage]
	if s == nil || len(raw) == 0 {
		return raw
	}
	out := s.value(nil, raw, 0)
	if s.kinds != nil {
		out = s.kinds.StartMasking().MaskJSON(out, contract.DataClasses{contract.NoClasses})
	}
	return out
}

// Text returns the text as it may be seen at the stage.
func (r *Rules) Text(stage, text string) string {
	s := r.stages[stage]
	if s == nil || text == "" {
		return text
	}
	text = s.text(text, 0)
	if s.kinds != nil {
		text = s.kinds.RedactText(text)
	}
	return text
}

// maxNesting bounds how deep values are examined, JSON inside strings included.
const maxNesting = 200

// value returns the value, which is at the path, without the selected values.
func (s *stage) value(at []string, raw json.RawMessage, depth int) json.RawMessage {
	for _, rule := range s.paths {
		if matchesPath(rule.steps, at) {
			return rule.replace
		}
	}
	raw = json.RawMessage(strings.TrimSpace(string(raw)))
	if depth > maxNesting || len(raw) == 0 {
		return strictjson.QuoteString(Placeholder)
	}
	var (
		out any
		err error
	)
	switch raw[0] {
	case '{':
		var members map[string]json.RawMessage
		err = strictjson.Unmarshal(raw, &members)
		for name, member := range members {
			if replace, ok := s.keys[strings.ToLower(name)]; ok {
				members[name] = replace
			} else {
				members[name] = s.value(append(slices.Clip(at), name), member, depth+1)
			}
		}
		out = members
	case '[':
		var items []json.RawMessage
		err = strictjson.Unmarshal(raw, &items)
		for i, item := range items {
			items[i] = s.value(append(slices.Clip(at), strconv.Itoa(i)), item, depth+1)
		}
		out = items
	case '"':
		var text string
		err = strictjson.Unmarshal(raw, &text)
		out = s.text(text, depth)
	default: // a number, for which a pattern may be written
		if changed := s.replacePatterns(string(raw)); changed != string(raw) {
			return strictjson.QuoteString(changed)
		}
		return raw
	}
	if err != nil {
		return strictjson.QuoteString(Placeholder)
	}
	encoded, err := strictjson.Marshal(out)
	if err != nil {
		return strictjson.QuoteString(Placeholder)
	}
	return encoded
}

// text returns the text without the selected values. Text that is JSON is examined as
// a value of its own.
func (s *stage) text(text string, depth int) string {
	if trimmed := strings.TrimSpace(text); trimmed != "" && (trimmed[0] == '{' || trimmed[0] == '[') {
		var raw json.RawMessage
		if strictjson.Unmarshal([]byte(trimmed), &raw) == nil {
			return string(s.value(nil, raw, depth+1))
		}
	}
	return s.replacePatterns(text)
}

func (s *stage) replacePatterns(text string) string {
	for _, rule := range s.patterns {
		text = rule.pattern.ReplaceAllLiteralString(text, rule.replace)
	}
	return text
}

func matchesPath(steps, at []string) bool {
	return slices.EqualFunc(steps, at, func(step, name string) bool { return step == "*" || step == name })
}

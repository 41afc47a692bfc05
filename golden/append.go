package golden

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/caprouter/caprouter/internal/routediff"
	"github.com/caprouter/caprouter/internal/yamledit"
)

// AppendCase returns the YAML case file with the case at its end. Comments and
// formatting of the file survive; data is nil for a new file. The id of the case may
// be "" and is then derived from its input. Of the case, id, input, tenant, outcome,
// agents and intent are written. A case with the same input is an error that names it.
func AppendCase(file string, data []byte, c *Case, names *DeclaredNames) ([]byte, error) {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".yaml", ".yml":
	default:
		return nil, fmt.Errorf("%s: cases are added to files that end in .yaml", file)
	}
	existing, _ := ReadYAML(file, data, nil) // its errors are those of the result
	if c.ID == "" {
		c.ID = newCaseID(c.Input)
	}
	for i := range existing {
		switch other := &existing[i]; {
		case len(other.History) == 0 && strings.TrimSpace(other.Input) == strings.TrimSpace(c.Input):
			return nil, &DuplicateError{File: file, Line: other.Line, ID: other.ID, Agrees: other.Expect.agreesWith(&c.Expect)}
		case other.ID == c.ID:
			return nil, fmt.Errorf("%s:%d: the id %q is taken: choose another", file, other.Line, c.ID)
		}
	}
	var wrong error
	caseChecker{names, func(detail string, _ ...any) { wrong = cmp.Or(wrong, errors.New(detail)) }}.checkCase(c)
	if wrong != nil {
		return nil, fmt.Errorf("a case for %s: %w", file, wrong)
	}
	changed, err := yamledit.Append(data, []string{"cases"}, c.formatYAML())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if _, err := ReadYAML(file, changed, names); err != nil {
		return nil, err
	}
	return changed, nil
}

// DuplicateError reports that a file has a case with the same input.
type DuplicateError struct {
	File string
	Line int
	ID   string
	// Agrees reports whether the case expects the same outcome and agents.
	Agrees bool
}

func (e *DuplicateError) Error() string {
	if e.Agrees {
		return fmt.Sprintf("%s:%d: the case %s has this input already, and expects the same", e.File, e.Line, e.ID)
	}
	return fmt.Sprintf("%s:%d: the case %s has this input already: change what it expects there", e.File, e.Line, e.ID)
}

// agreesWith reports whether both expect the same agents, or the same outcome without agents.
func (e *Expect) agreesWith(other *Expect) bool {
	return routediff.SameSet(e.Agents, other.Agents) && (len(e.Agents) > 0 || e.Outcome == other.Outcome)
}

func (c *Case) formatYAML() yamledit.Item {
	var expect []string
	if c.Expect.Outcome != "" {
		expect = append(expect, "outcome: "+string(c.Expect.Outcome))
	}
	if c.Expect.Agents != nil {
		var ids []string
		for _, id := range c.Expect.Agents {
			ids = append(ids, yamledit.Key(id))
		}
		expect = append(expect, "agents: ["+strings.Join(ids, ", ")+"]")
	}
	if c.Expect.Intent != "" {
		expect = append(expect, "intent: "+yamledit.Key(c.Expect.Intent))
	}
	item := yamledit.Item{"id: " + yamledit.Key(c.ID), "input: " + yamledit.Quote(c.Input)}
	if c.Tenant != "" {
		item = append(item, "tenant: "+yamledit.Key(c.Tenant))
	}
	return append(item, "expect: { "+strings.Join(expect, ", ")+" }")
}

// newCaseID returns the first words of the input and a hash that distinguishes it from
// inputs that begin alike.
func newCaseID(input string) string {
	const maxWords, maxLength = 4, 40
	words := strings.FieldsFunc(strings.ToLower(input), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	name := []rune(strings.Join(words[:min(len(words), maxWords)], "-"))
	if len(name) == 0 {
		name = []rune("case")
	}
	sum := sha256.Sum256([]byte(input))
	return string(name[:min(len(name), maxLength)]) + "-" + hex.EncodeToString(sum[:3])
}

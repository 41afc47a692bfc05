package redact

import (
	"fmt"
	"strings"
)

// Config selects the kinds to mask. The zero value masks every kind.
type Config struct {
	Kinds []string // nil = all
	// Allow lists values that are never masked, compared without case.
	// "@example.com" allows every address of that domain.
	Allow []string
}

// Redactor masks texts. It is safe for concurrent use.
type Redactor struct {
	kinds kindSet
	allow map[string]bool // in lower case
}

// New validates the configuration.
func New(cfg Config) (*Redactor, error) {
	r := &Redactor{kinds: allKinds, allow: make(map[string]bool, len(cfg.Allow))}
	if cfg.Kinds != nil {
		set, err := parseKinds(cfg.Kinds)
		if err != nil {
			return nil, fmt.Errorf("redact: kinds: %w", err)
		}
		r.kinds = set
	}
	for i, v := range cfg.Allow {
		if strings.TrimSpace(v) == "" || v == "@" {
			return nil, fmt.Errorf("redact: allow[%d]: %q is no value; leave it out", i, v)
		}
		r.allow[strings.ToLower(v)] = true
	}
	return r, nil
}

// RedactText replaces each value by the name of its kind, such as [EMAIL]. Use
// it for texts such as errors, which are never restored.
func (r *Redactor) RedactText(s string) string {
	found := findValues(s, r.kinds)
	if len(found) == 0 {
		return s
	}
	var b strings.Builder
	at := 0
	for _, f := range found {
		if value := s[f.start:f.end]; f.row != literalRow && !r.allowed(f.row, value) {
			b.WriteString(s[at:f.start])
			b.WriteString("[" + detectors[f.row].label + "]")
			at = f.end
		}
	}
	b.WriteString(s[at:])
	return b.String()
}

// allowed reports whether a value is in Config.Allow.
func (r *Redactor) allowed(row int, value string) bool {
	if len(r.allow) == 0 || row == literalRow {
		return false
	}
	v := strings.ToLower(value)
	if r.allow[v] {
		return true
	}
	at := strings.LastIndexByte(v, '@')
	return detectors[row].name == Email && at >= 0 && r.allow[v[at:]]
}

package redact

import (
	"fmt"
	"strings"
)

// Config says what is masked. The zero value masks every kind.
type Config struct {
	Kinds []string // nil = all
	// Allow holds values that are never masked, compared without regard to case.
	// "@example.com" stands for every address there.
	Allow []string
}

// Redactor masks texts. It may be used concurrently.
type Redactor struct {
	kinds kindSet
	allow map[string]bool // in lower case
}

// New checks the configuration.
func New(cfg Config) (*Redactor, error) {
	r := &Redactor{kinds: everyKind, allow: make(map[string]bool, len(cfg.Allow))}
	if cfg.Kinds != nil {
		set, err := setOf(cfg.Kinds)
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

// RedactText masks a text for people to read, such as an error: each value becomes the
// name of its kind, [EMAIL], with no way back.
func (r *Redactor) RedactText(s string) string {
	found := scan(s, r.kinds)
	if len(found) == 0 {
		return s
	}
	var b strings.Builder
	at := 0
	for _, f := range found {
		if value := s[f.start:f.end]; f.row != literal && !r.allowed(f.row, value) {
			b.WriteString(s[at:f.start])
			b.WriteString("[" + kinds[f.row].label + "]")
			at = f.end
		}
	}
	b.WriteString(s[at:])
	return b.String()
}

// allowed reports whether a value is never masked.
func (r *Redactor) allowed(row int, value string) bool {
	if len(r.allow) == 0 || row == literal {
		return false
	}
	v := strings.ToLower(value)
	if r.allow[v] {
		return true
	}
	at := strings.LastIndexByte(v, '@')
	return kinds[row].name == Email && at >= 0 && r.allow[v[at:]]
}

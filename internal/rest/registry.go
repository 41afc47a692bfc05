package rest

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/lint"
	"github.com/caprouter/caprouter/internal/strictyaml"
	"github.com/caprouter/caprouter/internal/visibility"
)

// Registry is the response of GET /api/v1/registry.
type Registry struct {
	Version  string                    `json:"version"`
	Agents   []contract.RegistryEntry  `json:"agents"`
	Intents  []string                  `json:"intents"`
	Domains  []string                  `json:"domains"`
	Aliases  map[string][]string       `json:"domain_aliases"`
	Routing  Routing                   `json:"routing"`
	Fallback FallbackPolicy            `json:"fallback"`
	Grants   map[string]contract.Grant `json:"grants"`
	Warnings []string                  `json:"warnings"`
}

// Routing is the routing section of a registry, with defaults.
type Routing struct {
	ConfidenceThreshold float64  `json:"confidence_threshold"`
	MinConfidence       *float64 `json:"min_confidence"`
	AmbiguityThreshold  float64  `json:"ambiguity_threshold"`
	TopK                int      `json:"topk"`
	ConflictPolicy      string   `json:"conflict_policy"`
	AutoSplitIfConflict bool     `json:"auto_split_if_conflict"`
	ImpliedDomains      bool     `json:"implied_domains"`
}

// FallbackPolicy is the fallback section of a registry, with defaults.
type FallbackPolicy struct {
	Policy    string `json:"policy"`
	MaxTokens int    `json:"max_tokens"`
	Language  string `json:"language"`
}

// RegistryCheck is the response of POST /api/v1/registry/validate.
type RegistryCheck struct {
	Valid    bool     `json:"valid"`
	Version  string   `json:"version"`
	Agents   int      `json:"agents"`
	Warnings []string `json:"warnings"`
}

// RegistryLint is the response of POST /api/v1/registry/lint.
type RegistryLint struct {
	Version  string                 `json:"version"`
	Findings []capabilities.Finding `json:"findings"`
	Learning *Learning              `json:"learning,omitempty"`
}

// Learning is what the lexical classifier learns from the examples of a registry.
type Learning struct {
	Examples      int               `json:"examples"`
	Languages     map[string]int    `json:"languages"`
	Trials        int               `json:"trials"`
	Accuracy      float64           `json:"accuracy"`
	AgentAccuracy float64           `json:"agent_accuracy"`
	Intents       []IntentLearning  `json:"intents"`
	Confusions    []IntentConfusion `json:"confusions"`
}

// IntentLearning is the part of Learning about one intent.
type IntentLearning struct {
	Intent   string  `json:"intent"`
	Examples int     `json:"examples"`
	Trials   int     `json:"trials"`
	Accuracy float64 `json:"accuracy"`
}

// IntentConfusion counts held-out examples of Intent that were taken for Got.
type IntentConfusion struct {
	Intent string `json:"intent"`
	Got    string `json:"got"`
	Count  int    `json:"count"`
}

func (a *api) handleRegistry(c *httpserver.Context) error {
	snapshot := a.deps.Registry()
	visible := visibility.FilterRegistry(snapshot, c.Caller)
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, Registry{
		Version:  snapshot.Catalogue.Version,
		Agents:   visible.Agents,
		Intents:  visible.Intents,
		Domains:  visible.Domains,
		Aliases:  visible.Aliases,
		Routing:  Routing(snapshot.Catalogue.Routing),
		Fallback: FallbackPolicy(snapshot.Catalogue.Fallback),
		Grants:   visible.Grants,
		Warnings: visible.Warnings,
	})
}

func (a *api) handleValidate(c *httpserver.Context) error {
	return a.checkRegistry(c, func(s *capabilities.Snapshot, _ *lint.Turn) (any, error) {
		return RegistryCheck{Valid: true, Version: s.Catalogue.Version, Agents: len(s.Catalogue.Agents), Warnings: s.Fleet.Warnings}, nil
	})
}

func (a *api) handleLint(c *httpserver.Context) error {
	return a.checkRegistry(c, func(s *capabilities.Snapshot, turn *lint.Turn) (any, error) {
		report, err := lint.Check(c.Request.Context(), s, lint.Config{
			MaxAgents: maxLintAgents, MaxIntents: maxLintIntents, MaxExamples: maxLintExamples, Pace: turn.Pace,
		})
		if err != nil {
			return nil, fmt.Errorf("check a registry: %w", err)
		}
		return RegistryLint{Version: s.Catalogue.Version, Findings: report.Findings, Learning: newLearning(report.Learning)}, nil
	})
}

// checkRegistry parses the body, and responds with the result of the check. The turn
// ends before the response, so that a slow reader delays no other check.
func (a *api) checkRegistry(c *httpserver.Context, check func(s *capabilities.Snapshot, turn *lint.Turn) (any, error)) error {
	result, err := func() (any, error) {
		turn := a.checks.Begin(c.Request.Context(), c.Draining)
		defer turn.End()
		defer turn.Pace() // for what the last step took
		snapshot, err := parseRegistry(c)
		if err != nil {
			return nil, err
		}
		turn.Pace()
		return check(snapshot, turn)
	}()
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, result)
}

// Bounds of a check for a caller: the size of a registry whose examples are learned and
// routed, which takes a few seconds, and the confusions that are returned.
const (
	maxLintAgents   = 1000
	maxLintIntents  = 200
	maxLintExamples = 1000
	maxConfusions   = 50
)

// newLearning returns the wire form; nil remains nil.
func newLearning(l *lint.Learning) *Learning {
	if l == nil {
		return nil
	}
	wire := &Learning{
		Examples: l.Examples, Languages: map[string]int{}, Trials: l.Trials, Accuracy: l.Accuracy, AgentAccuracy: l.AgentAccuracy,
		Intents: []IntentLearning{}, Confusions: []IntentConfusion{},
	}
	for _, c := range l.Languages {
		wire.Languages[c.Language] = c.Examples
	}
	for _, r := range l.Intents {
		wire.Intents = append(wire.Intents, IntentLearning(r))
	}
	for _, c := range l.Confusions[:min(len(l.Confusions), maxConfusions)] {
		wire.Confusions = append(wire.Confusions, IntentConfusion(c))
	}
	return wire
}

// registryName is the file name for the parser. Callers receive the line, column
// and text of its errors, but not the file name.
const registryName = "registry.yaml"

func parseRegistry(c *httpserver.Context) (*capabilities.Snapshot, error) {
	defer c.ReleaseBody()
	snapshot, err := capabilities.Parse(registryName, c.Body())
	if err == nil {
		return snapshot, nil
	}
	mistakes, ok := errors.AsType[strictyaml.Errors](err)
	if !ok {
		return nil, fmt.Errorf("parse a registry: %w", err)
	}
	return nil, mistakesIn("the registry is not valid", mistakes)
}

// mistakesIn returns the error for a file with mistakes.
func mistakesIn(message string, mistakes strictyaml.Errors) error {
	e := &contract.Error{Code: contract.CodeInvalidRequest, Message: message}
	for _, m := range mistakes {
		e.Details = append(e.Details, contract.ErrorDetail{Line: m.Line, Column: m.Column, Detail: m.Detail})
	}
	return e
}

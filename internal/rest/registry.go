package rest

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
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
	Version  string    `json:"version"`
	Findings []Finding `json:"findings"`
}

// Finding is a valid setting that is probably a mistake.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity string   `json:"severity"`
	Message  string   `json:"message"`
	Agents   []string `json:"agents"`
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
	snapshot, err := parseRegistry(c)
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, RegistryCheck{
		Valid:    true,
		Version:  snapshot.Catalogue.Version,
		Agents:   len(snapshot.Catalogue.Agents),
		Warnings: snapshot.Fleet.Warnings,
	})
}

func (a *api) handleLint(c *httpserver.Context) error {
	snapshot, err := parseRegistry(c)
	if err != nil {
		return err
	}
	lint := RegistryLint{Version: snapshot.Catalogue.Version}
	for _, f := range capabilities.Lint(snapshot) {
		lint.Findings = append(lint.Findings, Finding{
			Rule: f.Rule, Severity: f.Severity, Message: f.Message, Agents: f.Agents,
		})
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, lint)
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
	e := &contract.Error{Code: contract.CodeInvalidRequest, Message: "the registry is not valid"}
	for _, m := range mistakes {
		e.Details = append(e.Details, contract.ErrorDetail{Line: m.Line, Column: m.Column, Detail: m.Detail})
	}
	return nil, e
}

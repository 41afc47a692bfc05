// Package lint checks a registry: by the rules of package capabilities, by routing
// each of its examples, and by what the lexical classifier learns from them.
//
//	Snapshot ──▶ capabilities.Lint ──────────────────────▶ findings about declarations
//	    └──▶ router with the lexical classifier ──▶ dry run of each example ──▶ findings about examples
//	                └──▶ Learning: examples, languages, accuracy, confused intents
package lint

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/router"
)

// Config controls a check. The zero value checks everything.
type Config struct {
	// MaxAgents, MaxIntents and MaxExamples bound the work for a registry of a caller:
	// if it has more, its examples are neither learned nor routed. 0 = no limit.
	MaxAgents, MaxIntents, MaxExamples int
	// Pace, if set, is called often, and the check then uses one processor; see Turn.Pace.
	Pace     func() bool
	NoModel  bool                  // the configuration names no model
	Redactor *redact.Redactor      // as for requests; nil = mask all kinds
	Progress func(done, total int) // called after each example, one call at a time; may be nil
}

// Report is the result of a check.
type Report struct {
	Findings []capabilities.Finding
	Learning *Learning // nil if the registry has too many examples
}

// RuleUnansweredFallback reports that fallback policy A has no model to answer.
const RuleUnansweredFallback = "fallback-unanswered"

// RuleStopName reports a domain or an intent whose name is a stop word.
const RuleStopName = "name-stop-word"

// RulePersonalData reports texts of an agent that contain personal data or secrets.
const RulePersonalData = "personal-data"

// Rules of the findings that result from routing examples without a model.
const (
	RuleExampleRefused    = "example-refused"      // no agent gets the request
	RuleExampleAmbiguous  = "example-ambiguous"    // the caller would be asked what is meant
	RuleExampleElsewhere  = "example-elsewhere"    // another agent gets the request
	RuleConfusedIntents   = "intents-confused"     // held-out examples are taken for those of another intent
	RuleUncheckedExamples = "examples-not-checked" // the registry is larger than Config permits
)

// Check checks a registry. If ctx ends, the findings about examples are incomplete
// and the error is that of ctx.
func Check(ctx context.Context, s *capabilities.Snapshot, cfg Config) (*Report, error) {
	r := &Report{Findings: capabilities.Lint(s)}
	if cfg.NoModel && s.Catalogue.Fallback.Policy == capabilities.FallbackAnswer {
		r.Findings = append(r.Findings, capabilities.Finding{
			Rule: RuleUnansweredFallback, Severity: capabilities.SeverityWarning, Agents: []string{},
			Message: "fallback.policy is A, and no model is configured: a request without an eligible agent is answered with the reason and the accepted intents only. " +
				"Configure a model, or write B (refuse) or C (ticket)",
		})
	}
	r.Findings = append(r.Findings, findStopNames(s.Catalogue)...)
	personal, err := findPersonalData(s.Catalogue)
	if err != nil {
		return nil, err
	}
	r.Findings = append(r.Findings, personal...)
	examples := collectExamples(s)
	if finding := cfg.checkSize(s.Catalogue, len(examples)); finding != nil {
		r.Findings = append(r.Findings, *finding)
		return r, nil
	}
	corpus := classifier.BuildCorpus(s.Catalogue)
	corpus.Pace = cfg.Pace
	model, err := lexical.TrainContext(ctx, corpus)
	if err != nil {
		return nil, err
	}
	view := router.NewTrainedView(s, model, dispatch.None{})
	r.Learning = Describe(s.Catalogue, view.Lexical)
	found, err := routeWithView(ctx, view, examples, &cfg)
	if err != nil {
		return nil, err
	}
	r.Findings = append(r.Findings, found...)
	r.Findings = append(r.Findings, r.Learning.findConfusions(s.Catalogue)...)
	slices.SortStableFunc(r.Findings, func(a, b capabilities.Finding) int {
		return strings.Compare(b.Severity, a.Severity) // warnings first
	})
	return r, nil
}

// findStopNames reports domains and intents whose names are stop words, unless a text can mean
// them by an alias or an example.
func findStopNames(c *capabilities.Catalogue) (findings []capabilities.Finding) {
	report := func(message string, declares func(m *contract.Match) bool) {
		f := capabilities.Finding{Rule: RuleStopName, Severity: capabilities.SeverityWarning, Agents: []string{}, Message: message}
		for _, agent := range c.Agents {
			if len(f.Agents) < maxNamedAgents && declares(&agent.Match) {
				f.Agents = append(f.Agents, agent.ID)
			}
		}
		findings = append(findings, f)
	}
	for _, domain := range c.Domains {
		hasAlias := slices.ContainsFunc(c.DomainAliases[domain], func(alias string) bool { return !lexical.IsStopName(alias) })
		if lexical.IsStopName(domain) && !hasAlias {
			report(fmt.Sprintf("domain %s is an everyday word: without a model, a request names it only in upper case (%s). Give it an alias, "+
				"such as %s_team, or a longer name", domain, strings.ToUpper(domain), domain),
				func(m *contract.Match) bool { return slices.Contains(m.Domains, domain) })
		}
	}
	for _, intent := range c.Intents {
		hasExamples := slices.ContainsFunc(c.Agents, func(e *contract.RegistryEntry) bool { return len(e.Examples[intent]) > 0 })
		if lexical.IsStopName(intent) && !hasExamples {
			report(fmt.Sprintf("intent %s is an everyday word: without a model, the name is no evidence for it. Give it examples, or a longer name", intent),
				func(m *contract.Match) bool { return slices.Contains(m.Intent, intent) })
		}
	}
	return findings
}

// checkSize returns a finding if the registry is larger than cfg permits, or nil.
func (cfg *Config) checkSize(catalogue *capabilities.Catalogue, examples int) *capabilities.Finding {
	for _, bound := range []struct {
		noun      string
		have, max int
	}{
		{"agents", len(catalogue.Agents), cfg.MaxAgents},
		{"intents", len(catalogue.Intents), cfg.MaxIntents},
		{"examples", examples, cfg.MaxExamples},
	} {
		if bound.max > 0 && bound.have > bound.max {
			return &capabilities.Finding{
				Rule: RuleUncheckedExamples, Severity: capabilities.SeverityInfo, Agents: []string{},
				Message: fmt.Sprintf("the registry has %d %s, and examples of at most %d are routed here: check the file with caprouter lint", bound.have, bound.noun, bound.max),
			}
		}
	}
	return nil
}

// routeWithView routes the examples with the lexical classifier and a router of their own.
func routeWithView(ctx context.Context, view *router.View, examples []example, cfg *Config) ([]capabilities.Finding, error) {
	c, err := classifier.New(classifier.Config{Mode: classifier.ModeLexical})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	rt, err := router.New(router.Config{Timeout: requestTimeout, Redactor: cfg.Redactor}, c, dispatch.None{})
	if err != nil {
		return nil, err
	}
	rt.SetView(view)
	return routeExamples(ctx, rt, examples, cfg)
}

package lint

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/router"
)

// requestTimeout never ends the dry run of an example.
const requestTimeout = contract.MaxTimeoutMS * time.Millisecond

// maxListedExamples bounds the examples of one finding.
const maxListedExamples = 20

// example is an example of an agent for an intent.
type example struct {
	agent  *contract.RegistryEntry
	intent string
	text   string
}

func collectExamples(s *capabilities.Snapshot) (list []example) {
	for _, agent := range s.Catalogue.Agents {
		for _, intent := range slices.Sorted(maps.Keys(agent.Examples)) {
			for _, text := range agent.Examples[intent] {
				list = append(list, example{agent, intent, text})
			}
		}
	}
	return list
}

// failure is an example that does not reach its agent: the rule and why. The rule is
// "" if it does.
type failure struct{ rule, because string }

// routeExamples routes each example as a dry run and returns one finding for each
// agent and rule. Its order is that of the rules, then of the agents.
func routeExamples(ctx context.Context, r *router.Router, list []example, cfg *Config) ([]capabilities.Finding, error) {
	failures := make([]failure, len(list))
	var mu sync.Mutex
	done := 0
	workers, progress := runtime.GOMAXPROCS(0), cfg.Progress
	if cfg.Pace != nil {
		workers = 1
	}
	run.ForEach(ctx, workers, len(list), func(ctx context.Context, i int) {
		if ctx.Err() != nil {
			return
		}
		if cfg.Pace != nil {
			cfg.Pace()
		}
		failures[i] = routeExample(ctx, r, &list[i])
		if progress != nil {
			mu.Lock()
			defer mu.Unlock()
			done++
			progress(done, len(list))
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var findings []capabilities.Finding
	for _, rule := range []struct{ name, outcome string }{
		{RuleExampleRefused, "refused"},
		{RuleExampleAmbiguous, "ambiguous"},
		{RuleExampleElsewhere, "sent to another agent"},
	} {
		findings = append(findings, groupFailures(rule.name, rule.outcome, list, failures)...)
	}
	return findings, nil
}

// groupFailures returns the finding of each agent for one rule. Examples of an agent
// are consecutive.
func groupFailures(rule, outcome string, list []example, failures []failure) (findings []capabilities.Finding) {
	for i := 0; i < len(list); {
		agent, total := list[i].agent, 0
		f := capabilities.Finding{Rule: rule, Severity: capabilities.SeverityWarning, Agents: []string{agent.ID}}
		failed := 0
		for ; i < len(list) && list[i].agent == agent; i++ {
			total++
			if failures[i].rule != rule {
				continue
			}
			failed++
			if len(f.Examples) < maxListedExamples {
				f.Examples = append(f.Examples, capabilities.FailedExample{Intent: list[i].intent, Text: list[i].text, Because: failures[i].because})
			}
		}
		if failed > 0 {
			first := &f.Examples[0]
			f.Message = fmt.Sprintf("%s: without a model, %d of %s are %s, for example %q (%s): %s",
				agent.ID, failed, plaintext.CountNoun(total, "example"), outcome, contract.SubtaskTitle(first.Text), first.Intent, first.Because)
			if total == 1 {
				f.Message = fmt.Sprintf("%s: without a model, its only example, %q (%s), is %s: %s",
					agent.ID, contract.SubtaskTitle(first.Text), first.Intent, outcome, first.Because)
			}
			findings = append(findings, f)
		}
	}
	return findings
}

// routeExample routes an example as a caller that meets the requirements of its agent.
func routeExample(ctx context.Context, r *router.Router, e *example) failure {
	policy := capabilities.FallbackUnsupported
	caller := &contract.Caller{Subject: "lint", AllScopes: true, AllAgents: true}
	if tenants := e.agent.Requires.Tenants; len(tenants) > 0 {
		caller.Tenant = tenants[0]
	}
	resp, err := r.Handle(ctx, &contract.Request{
		Content: contract.Content{Prompt: e.text}, Options: contract.Options{DryRun: true, Fallback: &policy},
	}, caller)
	if err != nil {
		return failure{RuleExampleRefused, err.Error()}
	}
	d := resp.Decision
	switch {
	case slices.Contains(d.Chosen, e.agent.ID), slices.Contains(d.Standby, e.agent.ID):
		return failure{}
	case len(resp.Data.Options) > 0:
		labels := make([]string, len(resp.Data.Options))
		for i := range resp.Data.Options {
			labels[i] = resp.Data.Options[i].Label
		}
		return failure{RuleExampleAmbiguous, "it may mean " + strings.Join(labels, " or ")}
	case len(d.Chosen) > 0:
		return failure{RuleExampleElsewhere, fmt.Sprintf("%s gets it, because it %s", strings.Join(d.Chosen, " and "), describeReading(d))}
	case onlyGated(d, e.agent.ID):
		return failure{}
	}
	return failure{RuleExampleRefused, describeRefusal(d, e)}
}

// onlyGated reports whether the agent is only excluded by requirements that an
// example cannot meet, for example data of a certain class.
func onlyGated(d *contract.Decision, agent string) bool {
	return slices.ContainsFunc(d.Candidates, func(c contract.Candidate) bool {
		return c.AgentID == agent && !slices.ContainsFunc(c.Gates, func(g contract.Gate) bool {
			return g.Gate == "threshold" || g.Gate == "confidence"
		})
	})
}

// describeRefusal returns why the agent does not get its example.
func describeRefusal(d *contract.Decision, e *example) string {
	if d.Classification.Intent != e.intent {
		return "it " + describeReading(d)
	}
	for i := range d.Candidates {
		c := &d.Candidates[i]
		if c.AgentID != e.agent.ID {
			continue
		}
		reasons := make([]string, len(c.Gates))
		for k, g := range c.Gates {
			reasons[k] = g.Reason
		}
		text := strings.Join(reasons, "; ")
		if len(c.MatchedDomains) == 0 {
			text += "; it names no domain of the agent"
		}
		return text
	}
	return "it " + describeReading(d)
}

// describeReading returns what an example is taken for.
func describeReading(d *contract.Decision) string {
	c := &d.Classification
	if c.Intent != contract.Unknown {
		return fmt.Sprintf("is taken for %s with a confidence of %.2f", c.Intent, c.Confidence)
	}
	if len(c.Alternatives) > 0 {
		next := c.Alternatives[0]
		return fmt.Sprintf("is not understood: %s is nearest, with a confidence of %.2f", next.Intent, next.Confidence)
	}
	return "is not understood"
}

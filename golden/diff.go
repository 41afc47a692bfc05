package golden

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// Diff is the difference between two registries on the same cases.
type Diff struct {
	A           string     `json:"registry_a"` // versions
	B           string     `json:"registry_b"`
	Classifier  Classifier `json:"classifier"`
	Interrupted bool       `json:"interrupted,omitzero"`
	Cases       int        `json:"cases"` // that were compared
	Rules       []string   `json:"rules"` // routing rules that differ
	Changes     []Change   `json:"changes"`
}

// Change is a case that the two registries route differently.
type Change struct {
	ID    string   `json:"id"`
	Input string   `json:"input"`
	What  []string `json:"what"` // outcome, agents, intent, domains
	A     Actual   `json:"a"`
	B     Actual   `json:"b"`
	Why   []string `json:"why"`

	DecisionA *contract.Decision `json:"decision_a"`
	DecisionB *contract.Decision `json:"decision_b"`
}

// DiffRegistries routes the cases by cfg.Registry (A) and by b, and returns the
// differences. Expectations are ignored. If ctx ends, it returns the comparison
// so far.
func DiffRegistries(ctx context.Context, cfg Config, b *capabilities.Snapshot) (*Diff, error) {
	if b == nil {
		return nil, errors.New("golden: a second registry is required")
	}
	rigA, err := cfg.newRouting()
	if err != nil {
		return nil, err
	}
	defer rigA.closeClassifier()
	other := cfg
	other.Registry = b
	rigB, err := other.newRouting()
	if err != nil {
		return nil, err
	}
	defer rigB.closeClassifier()

	changes := make([]*Change, len(cfg.Cases))
	compared := make([]bool, len(cfg.Cases))
	errs := make([]error, len(cfg.Cases))
	cfg.forEachCase(ctx, len(cfg.Cases), func(ctx context.Context, i int) {
		c := &cfg.Cases[i]
		change, err := compareCase(ctx, c, rigA, rigB)
		if ctx.Err() != nil {
			return
		}
		changes[i], errs[i], compared[i] = change, err, true
	})
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	d := &Diff{
		A: cfg.Registry.Catalogue.Version, B: b.Catalogue.Version, Classifier: rigA.classifierInfo(), Interrupted: ctx.Err() != nil,
		Rules: diffRules(cfg.Registry.Catalogue, b.Catalogue), Changes: []Change{},
	}
	for i, done := range compared {
		if !done {
			continue
		}
		d.Cases++
		if changes[i] != nil {
			d.Changes = append(d.Changes, *changes[i])
		}
	}
	return d, nil
}

// compareCase routes the case by both. It returns nil if the outcome is the
// same.
func compareCase(ctx context.Context, c *Case, a, b *routingSetup) (*Change, error) {
	respA, err := a.routeCase(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", c.ID, err)
	}
	respB, err := b.routeCase(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", c.ID, err)
	}
	if isUnrecorded(&respA.Decision.Classification) || isUnrecorded(&respB.Decision.Classification) {
		return nil, fmt.Errorf("case %s: the cassette has no reply for one of the registries, which are part of the question: record it with both, or compare without a model", c.ID)
	}
	ch := &Change{ID: c.ID, Input: c.Input, A: actualOf(respA), B: actualOf(respB)}
	if ch.A.Outcome != ch.B.Outcome {
		ch.What = append(ch.What, "outcome")
	}
	if !sameSet(ch.A.Agents, ch.B.Agents) {
		ch.What = append(ch.What, "agents")
	}
	if ch.A.Intent != ch.B.Intent {
		ch.What = append(ch.What, "intent")
	}
	if !sameSet(ch.A.Domains, ch.B.Domains) {
		ch.What = append(ch.What, "domains")
	}
	if len(ch.What) == 0 {
		return nil, nil
	}
	ch.DecisionA, ch.DecisionB = respA.Decision, respB.Decision
	ch.Why = explainChange(ch, a.view.Catalogue, b.view.Catalogue)
	return ch, nil
}

// explainChange explains a change from the two decisions.
func explainChange(ch *Change, a, b *capabilities.Catalogue) []string {
	why := []string{}
	if ch.A.Intent != ch.B.Intent || !sameSet(ch.A.Domains, ch.B.Domains) || ch.A.Confidence != ch.B.Confidence {
		why = append(why, fmt.Sprintf("read as %s by A, as %s by B", formatClassification(&ch.A), formatClassification(&ch.B)))
	}
	for _, id := range sortedSet(ch.A.Agents) {
		if !slices.Contains(ch.B.Agents, id) {
			why = append(why, fmt.Sprintf("%s: chosen by A (%s), not by B: %s", id, explainAgent(ch.DecisionA, a, id), explainAgent(ch.DecisionB, b, id)))
		}
	}
	for _, id := range sortedSet(ch.B.Agents) {
		if !slices.Contains(ch.A.Agents, id) {
			why = append(why, fmt.Sprintf("%s: chosen by B (%s), not by A: %s", id, explainAgent(ch.DecisionB, b, id), explainAgent(ch.DecisionA, a, id)))
		}
	}
	if ch.A.Outcome != ch.B.Outcome {
		why = append(why, fmt.Sprintf("outcome: %s by A, %s by B", formatOutcome(&ch.A), formatOutcome(&ch.B)))
	}
	return why
}

func formatClassification(g *Actual) string {
	return fmt.Sprintf("%s (%s) with confidence %.2f", g.Intent, formatSet(g.Domains), g.Confidence)
}

func formatOutcome(g *Actual) string {
	if g.Reason == "" {
		return string(g.Outcome)
	}
	return fmt.Sprintf("%s (%s)", g.Outcome, g.Reason)
}

// explainAgent describes the result of an agent in a decision.
func explainAgent(d *contract.Decision, s *capabilities.Catalogue, id string) string {
	if s.Agent(id) == nil {
		return "it is not in that registry"
	}
	i := slices.IndexFunc(d.Candidates, func(c contract.Candidate) bool { return c.AgentID == id })
	if i < 0 {
		return "no candidate: what it declares scores below the match threshold"
	}
	c := &d.Candidates[i]
	text := fmt.Sprintf("score %.2f = intent %.2f + domains %.2f", c.Score, c.Parts.Intent, c.Parts.Domains)
	if c.Parts.Constraints != 0 {
		text += fmt.Sprintf(" − constraints %.2f", -c.Parts.Constraints)
	}
	parts := []string{text}
	for _, g := range c.Gates {
		parts = append(parts, g.Reason)
	}
	if c.Eligible && c.Role != contract.RoleChosen {
		behind := "eligible, behind another"
		if t := d.TieBreak; t != nil && t.Over == id {
			behind += " by " + t.Rule
		}
		parts = append(parts, behind)
	}
	return strings.Join(parts, "; ")
}

// diffRules lists the routing rules that differ.
func diffRules(a, b *capabilities.Catalogue) []string {
	list := []string{}
	add := func(key, was, is string) {
		if was != is {
			list = append(list, fmt.Sprintf("%s: %s in A, %s in B", key, was, is))
		}
	}
	ra, rb := &a.Routing, &b.Routing
	add("routing.confidence_threshold", formatNumber(ra.ConfidenceThreshold), formatNumber(rb.ConfidenceThreshold))
	add("routing.min_confidence", formatOptional(ra.MinConfidence), formatOptional(rb.MinConfidence))
	add("routing.ambiguity_threshold", formatNumber(ra.AmbiguityThreshold), formatNumber(rb.AmbiguityThreshold))
	add("routing.topk", fmt.Sprint(ra.TopK), fmt.Sprint(rb.TopK))
	add("routing.auto_split_if_conflict", fmt.Sprint(ra.AutoSplitIfConflict), fmt.Sprint(rb.AutoSplitIfConflict))
	add("routing.implied_domains", fmt.Sprint(ra.ImpliedDomains), fmt.Sprint(rb.ImpliedDomains))
	add("fallback.policy", a.Fallback.Policy, b.Fallback.Policy)
	return list
}

package golden

import (
	"context"
	"errors"
	"fmt"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/routediff"
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
	setupA, err := cfg.newRouting(ctx)
	if err != nil {
		return nil, err
	}
	defer setupA.closeClassifier()
	other := cfg
	other.Registry = b
	setupB, err := other.newRouting(ctx)
	if err != nil {
		return nil, err
	}
	defer setupB.closeClassifier()

	changes := make([]*Change, len(cfg.Cases))
	compared := make([]bool, len(cfg.Cases))
	errs := make([]error, len(cfg.Cases))
	cfg.forEachCase(ctx, len(cfg.Cases), func(ctx context.Context, i int) {
		c := &cfg.Cases[i]
		change, err := compareCase(ctx, c, setupA, setupB)
		if ctx.Err() != nil {
			return
		}
		changes[i], errs[i], compared[i] = change, err, true
	})
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	d := &Diff{
		A: cfg.Registry.Catalogue.Version, B: b.Catalogue.Version, Classifier: setupA.classifierInfo(), Interrupted: ctx.Err() != nil,
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
		return nil, fmt.Errorf("case %s: the cassette has no reply for one of the two registries: record it with both, or compare without a model", c.ID)
	}
	ch := &Change{ID: c.ID, Input: c.Input, A: actualOf(respA), B: actualOf(respB), DecisionA: respA.Decision, DecisionB: respB.Decision}
	sideA, sideB := newSide("by A", &ch.A, respA.Decision, a), newSide("by B", &ch.B, respB.Decision, b)
	if ch.What = routediff.Compare(sideA, sideB); len(ch.What) == 0 {
		return nil, nil
	}
	ch.Why = routediff.Explain(sideA, sideB)
	return ch, nil
}

func newSide(label string, got *Actual, d *contract.Decision, by *routingSetup) *routediff.Side {
	return &routediff.Side{
		Label: label, Outcome: string(got.Outcome), Reason: got.Reason, Agents: got.Agents,
		Intent: got.Intent, Domains: got.Domains, Confidence: got.Confidence, Decision: d, Catalogue: by.view.Catalogue,
	}
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

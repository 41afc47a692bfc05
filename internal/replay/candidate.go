package replay

import (
	"context"
	"fmt"
	"slices"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/fallbackpolicy"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/routediff"
	"github.com/caprouter/caprouter/internal/visibility"
	"github.com/caprouter/caprouter/matcher"
	"github.com/caprouter/caprouter/router"
	"github.com/caprouter/caprouter/router/plan"
)

// candidate routes recorded requests with the candidate registry. One goroutine owns it.
type candidate struct {
	cfg      *Config
	view     *router.View
	policy   string   // of a fallback
	everyOne bool     // the reader may see all agents
	agents   []string // scopes of the agents that the reader may see
	scopes   []string // all scopes that agents require
	ordinals map[string]int
}

func newCandidate(ctx context.Context, cfg *Config) (*candidate, error) {
	catalogue := cfg.Candidate.Catalogue
	corpus := classifier.BuildCorpus(catalogue)
	corpus.Pace = cfg.Pace
	model, err := lexical.TrainContext(ctx, corpus)
	if err != nil {
		return nil, err
	}
	c := &candidate{
		cfg: cfg, view: router.NewTrainedView(cfg.Candidate, model, allUp{}),
		policy: fallbackpolicy.SelectPolicy(catalogue, cfg.AnswerByDefault), ordinals: map[string]int{},
	}
	visible := visibility.Visible(catalogue, cfg.Reader)
	c.everyOne = visible.All()
	for _, agent := range visible.List() {
		c.agents = append(c.agents, "agent:"+agent.ID)
		c.scopes = append(c.scopes, agent.Requires.Scopes...)
	}
	slices.Sort(c.scopes)
	c.scopes = slices.Compact(c.scopes)
	for i, agent := range c.view.Index.Agents() {
		c.ordinals[agent.ID] = i
	}
	return c, nil
}

// allUp is the live state of a router that only decides.
type allUp struct{}

// SetAgents returns nil: every agent is available.
func (allUp) SetAgents([]*contract.RegistryEntry) matcher.Live { return nil }

// route decides on a recorded request.
func (c *candidate) route(e *contract.DecisionEntry) *routediff.Side {
	d := e.Decision
	p := plan.New(&plan.Input{
		Catalogue: c.view.Catalogue, Index: c.view.Index, Live: c.recordedLive(d), Caller: c.callerOf(e),
		Prompt: e.Prompt, PromptBytes: len(e.Prompt), OnlyAgent: d.OnlyAgent, DataClasses: redact.PlaceholderKinds(e.Prompt),
		Classification: c.classify(e), Now: e.At,
	})
	side := newSide("after", &p.Decision)
	side.Catalogue, side.Reason, side.Outcome = c.view.Catalogue, p.Reason, OutcomeDispatch
	switch {
	case len(p.Options) > 0:
		side.Outcome = OutcomeClarify
	case p.Reason != "":
		side.Outcome = OutcomeFallback
	}
	return side
}

// classify returns the recorded classification, unless it is lexical: then the words of
// the candidate decide. If it is that of a follow-up which these do not understand by
// itself, the recorded one counts, because the record does not contain the previous request.
func (c *candidate) classify(e *contract.DecisionEntry) contract.Classification {
	clf := classifier.WithoutImplied(e.Decision.Classification)
	if clf.Source == contract.SourceLexical {
		own := classifier.ClassifyLexically(&classifier.Input{Prompt: e.Prompt, Catalogue: c.view.Catalogue, Lexical: c.view.Lexical})
		if clf.Reason != classifier.ReasonFollowUp || own.Intent != contract.Unknown || len(own.Subtasks) > 0 {
			clf = own
		}
	}
	classifier.ImplyDomains(c.view.Catalogue, &clf)
	return clf
}

// Gates of the record that depend on what the log does not contain: the scopes of the
// caller, and the inputs.
const (
	gateState   = "state"
	gateScopes  = "scopes"
	gateAccepts = "accepts_data_classes"
)

// callerOf returns the caller of the recorded request as far as the record shows it.
func (c *candidate) callerOf(e *contract.DecisionEntry) *contract.Caller {
	caller := &contract.Caller{Subject: e.Subject, Tenant: e.Tenant, Scopes: c.scopes, AllAgents: c.everyOne}
	excluded := c.excludedAgents(e.Decision)
	if c.everyOne && len(excluded) == 0 {
		return caller
	}
	caller.AllAgents = false
	caller.Scopes = slices.Concat(c.scopes, c.agents)
	caller.Scopes = slices.DeleteFunc(caller.Scopes, func(scope string) bool { return slices.Contains(excluded, scope) })
	return caller
}

// excludedAgents returns the scopes of the agents that the caller could not use, or that
// a requirement excluded which the candidate has, too.
func (c *candidate) excludedAgents(d *contract.Decision) (excluded []string) {
	for i := range d.Hidden {
		excluded = append(excluded, "agent:"+d.Hidden[i].AgentID)
	}
	for i := range d.Candidates {
		id := d.Candidates[i].AgentID
		agent := c.view.Catalogue.Agent(id)
		if agent == nil {
			continue
		}
		for _, g := range d.Candidates[i].Gates {
			if g.Gate == gateScopes && len(agent.Requires.Scopes) > 0 || g.Gate == gateAccepts && agent.AcceptsDataClasses != nil {
				excluded = append(excluded, "agent:"+id)
			}
		}
	}
	return excluded
}

// recordedLive returns the live state that excluded agents from the recorded decision. An
// agent that was disabled is available, because the candidate does not disable it.
func (c *candidate) recordedLive(d *contract.Decision) (live matcher.Live) {
	for i := range d.Candidates {
		ordinal, known := c.ordinals[d.Candidates[i].AgentID]
		down := slices.ContainsFunc(d.Candidates[i].Gates, func(g contract.Gate) bool {
			return g.Gate == gateState && g.Reason != matcher.ReasonDisabled
		})
		if !known || !down {
			continue
		}
		if live == nil {
			live = make(matcher.Live, len(c.ordinals))
		}
		live[ordinal] = &matcher.LiveState{}
		live[ordinal].SetState(contract.AgentDraining)
	}
	return live
}

// explainUndeclared names the recorded intents that the candidate does not declare: a
// model would propose other ones.
func (c *candidate) explainUndeclared(after *routediff.Side) (why []string) {
	clf := &after.Decision.Classification
	intents := []string{clf.Intent}
	for i := range clf.Subtasks {
		intents = append(intents, clf.Subtasks[i].Intent)
	}
	for _, intent := range routediff.SortedSet(intents) {
		if _, declared := slices.BinarySearch(c.view.Catalogue.Intents, intent); !declared && intent != "" && intent != contract.Unknown {
			why = append(why, fmt.Sprintf("the candidate does not declare the intent %s; a model that classified anew would name another one", intent))
		}
	}
	return why
}

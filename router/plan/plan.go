// Package plan decides which agents execute the parts of a request, and turns
// their results into one response. It takes values and returns values: no clock,
// no store, no goroutine. Reaching the agents is internal/execution's concern.
//
//	p := plan.New(&plan.Input{Catalogue: catalogue, Index: index, Caller: caller, Prompt: prompt, Classification: c})
//	switch {
//	case len(p.Options) > 0: // ambiguous or divergent: ask the caller which reading is meant
//	case p.Reason != "":     // no agent is eligible: fall back
//	default:                 // send each of p.Parts to its first agent, the others are standbys
//	}
//	resp := p.Response(request, false)
//	p.Aggregate(resp, outcomes)
package plan

import (
	"slices"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/matcher"
)

// Input is everything that a plan depends on.
type Input struct {
	Catalogue      *capabilities.Catalogue
	FleetRevision  string         // of the fleet that Live is of
	Index          *matcher.Index // over the agents of Catalogue
	Live           matcher.Live   // state of the agents; nil plans as if all of them were up
	Caller         *contract.Caller
	Prompt         string   // masked
	PromptBytes    int      // length of the original prompt
	OnlyAgent      string   // the one agent that may be a candidate; "" = any
	DataClasses    []string // kinds of personal data in the prompt and history
	InputClasses   []string // likewise in the inputs; may be nil unless Index.LimitsDataClasses
	AlreadyAsked   bool     // the session's last response was a clarification, so do not ask again
	Classification contract.Classification
	DecisionID     string
	Now            time.Time
}

// Plan is a routing decision and the tasks that follow from it.
type Plan struct {
	Decision contract.Decision
	Parts    []Part
	Omitted  []contract.Omitted
	// Reason is why no agent may execute any part; "" if one may.
	Reason string
	// Options are the readings to ask the caller about, before any part is sent.
	Options []contract.ClarificationOption
}

// Part is one task of a plan, and the agents that may execute it.
type Part struct {
	Subtask int // index into the subtasks of the classification, or WholeRequest
	Title   string
	Intent  string
	Domains []string
	// Confidence is that of the intent or, if there are Alternatives, of all of them.
	Confidence float64
	// Alternatives are the intents that the part may mean, likeliest first, if they
	// are tied: the agents declare all of them.
	Alternatives []contract.IntentScore
	// Agents are ids: the chosen agent, then the standbys in the order of failover.
	// An agent may leave the registry before it is sent the part; see Recheck.
	Agents []string
	// Down is set instead of Agents if only live state excludes the agents: it is
	// the best of them. Such a part fails fast, it is not unsupported.
	Down *contract.Candidate

	runnersUp []contract.IntentScore  // the next best intents, best first
	origins   []contract.DomainOrigin // of Domains
}

// WholeRequest is the Subtask of the only part of a request without subtasks.
const WholeRequest = -1

// New decides which agents execute the request.
func New(in *Input) *Plan {
	c := &in.Classification
	p := planner{
		in:    in,
		query: in.newQuery(),
		plan: &Plan{Decision: contract.Decision{
			DecisionID:      in.DecisionID,
			Classification:  *c,
			Candidates:      []contract.Candidate{},
			Chosen:          []string{},
			Standby:         []string{},
			OnlyAgent:       in.OnlyAgent,
			RegistryVersion: in.Catalogue.Version,
			FleetRevision:   in.FleetRevision,
		}},
	}
	clearTies(&p.plan.Decision.Classification)
	parts := splitParts(in)
	if options := p.findDivergence(parts); options != nil {
		p.plan.Reason, p.plan.Options = fallback.ReasonDivergent, options
	} else {
		p.matchParts(parts)
	}
	if in.AlreadyAsked {
		p.plan.Options = nil
	}
	p.plan.Options = p.dropDisabled(p.plan.Options)
	if p.plan.Reason != "" {
		p.showNearest()
	}
	return p.plan
}

// newQuery returns the part of a query that is the same for all parts.
func (in *Input) newQuery() matcher.Query {
	return matcher.Query{
		PromptBytes:   in.PromptBytes,
		Caller:        in.Caller,
		Only:          in.OnlyAgent,
		DataClasses:   in.DataClasses,
		InputClasses:  in.InputClasses,
		MinConfidence: classifier.MinConfidence(in.Catalogue.Routing, in.Classification.Source),
		NowMS:         in.Now.UnixMilli(),
	}
}

// clearTies removes the ties of a pinned classification, because this plan decides
// which intents are tied. The subtasks of the input are not changed.
func clearTies(c *contract.Classification) {
	c.Tied, c.TiedConfidence, c.Subtasks = false, 0, slices.Clone(c.Subtasks)
	for i := range c.Subtasks {
		c.Subtasks[i].Tied, c.Subtasks[i].TiedConfidence = false, 0
	}
}

// splitParts returns the parts to match: one for each subtask, which inherits the
// intent, the domains and the confidence of the request if it has none, or one for
// the request.
func splitParts(in *Input) []Part {
	c := &in.Classification
	if len(c.Subtasks) == 0 {
		return []Part{{
			Subtask: WholeRequest, Title: contract.SubtaskTitle(in.Prompt), Intent: c.Intent, Domains: c.Domains,
			Confidence: c.Confidence, runnersUp: c.Alternatives, origins: c.DomainOrigins,
		}}
	}
	parts := make([]Part, len(c.Subtasks))
	for i, s := range c.Subtasks {
		parts[i] = Part{
			Subtask: i, Title: s.Title, Intent: s.Intent, Domains: s.Domains,
			Confidence: s.Confidence, runnersUp: s.Alternatives, origins: s.DomainOrigins,
		}
		if s.Intent == "" {
			parts[i].Intent, parts[i].runnersUp = c.Intent, c.Alternatives
		}
		if s.Confidence == 0 {
			parts[i].Confidence = c.Confidence
		}
		if len(s.Domains) == 0 {
			parts[i].Domains, parts[i].origins = c.Domains, c.DomainOrigins
		}
	}
	return parts
}

func appendUnique(ids []string, id string) []string {
	if slices.Contains(ids, id) {
		return ids
	}
	return append(ids, id)
}

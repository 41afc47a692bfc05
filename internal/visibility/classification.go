package visibility

import (
	"cmp"
	"math"
	"slices"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/matcher"
)

// Classification returns what the caller may see of the classification: labels
// of hidden agents become contract.Unknown, and the replies of a model are
// removed, because its prompt contained all labels.
func (f *Filter) Classification(c *contract.Classification) contract.Classification {
	switch {
	case f.access != accessNamedAgents:
		return *c
	case f.hidesEverything(c):
		return f.concealedClassification(c)
	}
	return f.visiblePart(c)
}

// visiblePart filters a classification of which something remains visible.
func (f *Filter) visiblePart(c *contract.Classification) contract.Classification {
	filtered, titles := *c, f.maskTitles(c)
	filtered.Intent, filtered.Domains = f.maskIntent(c.Intent), f.maskDomains(c.Domains)
	filtered.DomainOrigins = f.visibleOrigins(c.DomainOrigins)
	filtered.Subtasks = slices.Clone(c.Subtasks)
	for i := range filtered.Subtasks {
		sub := &filtered.Subtasks[i]
		sub.Title = titles.replace(sub.Title)
		sub.Intent, sub.Domains = f.maskIntent(sub.Intent), f.maskDomains(sub.Domains)
		sub.DomainOrigins = f.visibleOrigins(sub.DomainOrigins)
		if titles.masked {
			sub.Reason = ""
		}
		listed := len(sub.Alternatives)
		sub.Alternatives, sub.Tied = f.visibleRunnersUp(sub.Intent, sub.Confidence, sub.Alternatives, sub.Tied)
		if !sub.Tied || len(sub.Alternatives) < listed {
			sub.TiedConfidence = 0 // the sum would reveal the confidence in a hidden intent
		}
	}
	filtered.ModelUse = withoutReplies(c.ModelUse)
	if c.Cascade != nil {
		cascade := *c.Cascade
		cascade.Intent = f.maskIntent(cascade.Intent)
		filtered.Cascade = &cascade
	}
	filtered.Alternatives, filtered.Tied = f.visibleRunnersUp(filtered.Intent, c.Confidence, c.Alternatives, c.Tied)
	if !filtered.Tied || len(filtered.Alternatives) < len(c.Alternatives) {
		filtered.TiedConfidence = 0
	}
	filtered.Evidence = f.visibleEvidence(c)
	return filtered
}

// visibleEvidence returns the evidence that agents declare which the caller may see.
// If no intent is visible, there is none, because a concealed classification has
// none either.
func (f *Filter) visibleEvidence(c *contract.Classification) (visible []contract.Evidence) {
	understood := f.isVisibleIntent(c.Intent) ||
		slices.ContainsFunc(c.Subtasks, func(sub contract.Subtask) bool { return sub.Intent != "" && f.isVisibleIntent(sub.Intent) })
	origins := slices.Clone(c.DomainOrigins)
	for i := range c.Subtasks {
		origins = append(origins, c.Subtasks[i].DomainOrigins...)
	}
	for i := range c.Evidence {
		if understood && f.agents.declares(&c.Evidence[i], origins) {
			visible = append(visible, c.Evidence[i])
		}
	}
	return visible
}

// visibleRunnersUp returns the visible ones of the next best intents. The intent is
// shown as tied only with a visible one, so that no tie reveals a hidden intent.
func (f *Filter) visibleRunnersUp(
	intent string, confidence float64, list []contract.IntentScore, tied bool,
) (visible []contract.IntentScore, visiblyTied bool) {
	for _, next := range list {
		if f.maskIntent(next.Intent) != next.Intent {
			continue
		}
		visible = append(visible, next)
		if tied && f.isVisibleIntent(intent) && confidence-next.Confidence < f.routing.AmbiguityThreshold {
			visiblyTied = true
		}
	}
	return visible, visiblyTied
}

// maskIntent returns the label, or contract.Unknown if the caller may not see it.
// An empty label stays empty: it inherits the intent of the request.
func (f *Filter) maskIntent(label string) string {
	if label == "" || f.agents.HasIntent(label) {
		return label
	}
	return contract.Unknown
}

// maskDomains returns the visible labels, or contract.Unknown if none of them is.
func (f *Filter) maskDomains(labels []string) []string {
	if len(labels) == 0 {
		return labels
	}
	visible := selectVisible(labels, f.agents.HasDomain)
	if len(visible) == 0 {
		return []string{contract.Unknown}
	}
	return visible
}

// visibleOrigins returns the origins of the visible domains.
func (f *Filter) visibleOrigins(origins []contract.DomainOrigin) []contract.DomainOrigin {
	var visible []contract.DomainOrigin
	for _, o := range origins {
		if !f.agents.HasDomain(o.Domain) {
			continue
		}
		if o.ReplacedBy != "" && !f.agents.HasDomain(o.ReplacedBy) {
			o.ReplacedBy = contract.Unknown
		}
		visible = append(visible, o)
	}
	return visible
}

// proposedDomains returns the visible domains that the text of the request alone
// proposes, with their origins: those that follow from its intent are left out,
// and the one that an implied domain replaced is back.
func (f *Filter) proposedDomains(c *contract.Classification) ([]string, []contract.DomainOrigin) {
	domains := selectVisible(c.Domains, f.agents.HasDomain)
	var origins []contract.DomainOrigin
	for _, o := range f.visibleOrigins(c.DomainOrigins) {
		switch {
		case o.Origin == contract.DomainImplied, o.Origin == contract.DomainLearned:
			domains = slices.DeleteFunc(domains, func(d string) bool { return d == o.Domain })
			continue
		case o.ReplacedBy != "":
			domains = append(domains, o.Domain)
			o.ReplacedBy = ""
		}
		origins = append(origins, o)
	}
	return domains, origins
}

// Conceals reports whether the caller sees the decision like one on a prompt that
// was not understood. If an agent that the caller may see serves a part
// nevertheless, because of its domains, the decision is filtered in part only.
func (f *Filter) Conceals(d *contract.Decision) bool {
	if d == nil || f.access != accessNamedAgents || !f.hidesEverything(&d.Classification) {
		return false
	}
	return !slices.ContainsFunc(d.Candidates, func(c contract.Candidate) bool {
		onlyDown := !slices.ContainsFunc(c.Gates, func(g contract.Gate) bool { return g.Gate != "state" })
		return f.maySee(c.AgentID) && (c.Role != contract.RoleCandidate || onlyDown)
	})
}

// hidesEverything reports whether something of the classification is hidden and
// none of its intents is visible. Such a classification is shown as one that was
// not understood, because a caller that guesses labels would otherwise find out
// which of them exist. Only a lexical classification can be without hidden
// labels here: a model knows hidden and unknown labels alike.
func (f *Filter) hidesEverything(c *contract.Classification) bool {
	if f.isVisibleIntent(c.Intent) {
		return false
	}
	hidden := c.Source != contract.SourceLexical || c.Intent != contract.Unknown || f.hidesDomain(c.Domains)
	for i := range c.Subtasks {
		sub := &c.Subtasks[i]
		if sub.Intent != "" && f.isVisibleIntent(sub.Intent) {
			return false
		}
		hidden = hidden || sub.Intent != "" || f.hidesDomain(sub.Domains)
	}
	return hidden
}

func (f *Filter) isVisibleIntent(label string) bool {
	return label != contract.Unknown && f.maskIntent(label) == label
}

func (f *Filter) hidesDomain(labels []string) bool {
	return !slices.Equal(f.maskDomains(labels), labels)
}

// concealedClassification is what the lexical classifier returns for a prompt in
// which it recognises no label, except visible domains.
func (f *Filter) concealedClassification(c *contract.Classification) contract.Classification {
	domains, origins := f.proposedDomains(c)
	concealed := contract.Classification{
		Intent: contract.Unknown, Domains: domains, DomainOrigins: origins, Subtasks: []contract.Subtask{},
		Source: c.Source, Reason: c.Reason, LatencyMS: c.LatencyMS, ModelUse: withoutReplies(c.ModelUse),
	}
	if concealed.Reason == classifier.ReasonTooManyParts || concealed.Reason == classifier.ReasonFollowUp {
		concealed.Reason = ""
	}
	if c.Cascade != nil {
		cascade := *c.Cascade
		cascade.Intent, cascade.Confidence, cascade.Agrees = contract.Unknown, 0, nil
		concealed.Cascade = &cascade
	}
	return concealed
}

// concealedDecision has the near misses that the visible domains would have.
func (f *Filter) concealedDecision(d *contract.Decision) *contract.Decision {
	concealed := *d
	concealed.Hidden, concealed.TieBreak = nil, nil
	concealed.Standby = selectVisible(d.Standby, f.maySee)
	concealed.OnlyAgent = f.visibleID(d.OnlyAgent)
	concealed.Classification = f.concealedClassification(&d.Classification)
	concealed.Candidates = []contract.Candidate{}
	for _, c := range d.Candidates {
		if !f.maySee(c.AgentID) || c.Subtask != nil || !f.rescore(&c, concealed.Classification.Domains) {
			continue
		}
		c.Gates = slices.DeleteFunc(c.Gates, func(g contract.Gate) bool { return g.Gate == "confidence" })
		c.Gates = append(c.Gates, f.confidenceGate(d.Classification.Source)...)
		concealed.Candidates = append(concealed.Candidates, c)
	}
	slices.SortStableFunc(concealed.Candidates, func(a, b contract.Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(len(b.MatchedDomains), len(a.MatchedDomains)))
	})
	concealed.CandidatesTotal = len(concealed.Candidates)
	return &concealed
}

// rescore changes the candidate to what it would be for the visible domains alone,
// and reports whether it would be one. contract.AnyDomain matches one domain that
// the agent does not name.
func (f *Filter) rescore(c *contract.Candidate, visible []string) bool {
	matched := selectVisible(c.MatchedDomains, func(d string) bool { return slices.Contains(visible, d) })
	if slices.Contains(c.MatchedDomains, contract.AnyDomain) &&
		slices.ContainsFunc(visible, func(d string) bool { return !slices.Contains(matched, d) }) {
		matched = append(matched, contract.AnyDomain)
	}
	c.Gates = slices.Clone(c.Gates)
	if len(matched) == len(c.MatchedDomains) || len(matched) == 0 {
		return len(matched) > 0
	}
	w := matcher.DefaultWeights()
	part := float64(min(w.Domain*len(matched), w.DomainMax)) / 100
	score := math.Round((c.Score-c.Parts.Domains+part)*100) / 100
	c.Score, c.Parts.Domains, c.MatchedDomains = score, part, matched
	for i := range c.Gates {
		if c.Gates[i].Gate == "threshold" {
			c.Gates[i] = matcher.DescribeThreshold(score, f.routing.ThresholdHundredths())
		}
	}
	return true
}

// confidenceGate is the gate that a classification with confidence 0 fails, if
// the registry requires any confidence.
func (f *Filter) confidenceGate(source contract.Source) []contract.Gate {
	minimum := classifier.MinConfidence(f.routing, source)
	if f.empty || minimum <= 0 {
		return nil
	}
	return []contract.Gate{matcher.DescribeConfidence(&matcher.Query{MinConfidence: minimum})}
}

// withoutReplies is the report of the model calls without the text of the model.
func withoutReplies(use *contract.ModelUse) *contract.ModelUse {
	if use == nil {
		return nil
	}
	filtered := *use
	filtered.Calls = slices.Clone(use.Calls)
	for i := range filtered.Calls {
		filtered.Calls[i].Reply, filtered.Calls[i].Detail = "", ""
	}
	return &filtered
}

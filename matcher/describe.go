package matcher

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/plaintext"
)

// ReasonDisabled is the reason of the gate "state" if the agent is disabled.
const ReasonDisabled = "disabled"

// Describe returns the wire form of a candidate: the parts of its score, and a
// sentence for each gate that it does not pass. The sentences contain what the caller
// lacks, and never other tenants. q and live are those of the match.
func (x *Index) Describe(c *Candidate, q *Query, live Live) contract.Candidate {
	violation := 0
	if c.violated {
		violation = -x.weights.Violation
	}
	intent := 0
	if c.traits&hasIntent != 0 {
		intent = x.weights.Intent
	}
	return contract.Candidate{
		AgentID: x.agents[c.Ordinal].ID,
		Score:   toDecimal(int(c.Score)),
		Parts: contract.ScoreParts{
			Intent:      toDecimal(intent),
			Domains:     toDecimal(x.weights.domainScore(int(c.Matched))),
			Constraints: toDecimal(violation),
		},
		MatchedDomains: c.matchedDomains(q),
		Eligible:       c.Eligible(),
		Role:           contract.RoleCandidate,
		Gates:          x.describeGates(c, q, live),
	}
}

// toDecimal converts a score to its wire form.
func toDecimal(hundredths int) float64 { return float64(hundredths) / 100 }

// matchedDomains returns the domains that count, "*" last.
func (c *Candidate) matchedDomains(q *Query) []string {
	matched := make([]string, 0, c.Matched)
	for i, name := range distinctDomains(q.Domains) {
		if c.traits&(hasDomain0<<i) != 0 {
			matched = append(matched, name)
		}
	}
	if len(matched) < int(c.Matched) {
		matched = append(matched, contract.AnyDomain)
	}
	return matched
}

func (x *Index) describeGates(c *Candidate, q *Query, live Live) []contract.Gate {
	gates := []contract.Gate{}
	add := func(name, reason string) {
		gates = append(gates, contract.Gate{Gate: name, Reason: reason})
	}
	agent, state := x.agents[c.Ordinal], live.stateOf(c.Ordinal)
	if c.Failed.Has(GateEntitlement) {
		add("entitlement", "needs scope agent:"+agent.ID)
	}
	if c.unavailable&unavailableDisabled != 0 {
		add("state", ReasonDisabled)
	}
	if c.unavailable&unavailableDraining != 0 {
		add("state", "draining: it takes no new tasks")
	}
	if c.unavailable&unavailableExpired != 0 {
		add("state", "expired: no heartbeat came in time")
	}
	if c.unavailable&unavailableBreaker != 0 {
		add("state", describeBreaker(state, q.NowMS))
	}
	if c.unavailable&unavailableBusy != 0 {
		add("state", describeCapacity(state))
	}
	if c.unavailable&unavailableTool != 0 {
		add("state", "its tool cannot be called")
	}
	if c.Failed.Has(GateScopes) {
		add("scopes", describeMissingScopes(agent.Requires.Scopes, q.callerOrNone()))
	}
	if c.Failed.Has(GateTenant) {
		add("tenant", describeTenant(q.callerOrNone()))
	}
	if c.Failed.Has(GateDataClasses) {
		add("data_classes", describeMissingClasses(agent.Requires.DataClasses, q))
	}
	if c.Failed.Has(GateAcceptance) {
		add("accepts_data_classes", describeRefusedClasses(agent.AcceptsDataClasses, q))
	}
	if c.Failed.Has(GateThreshold) {
		gates = append(gates, DescribeThreshold(toDecimal(int(c.Score)), x.threshold))
	}
	if c.Failed.Has(GateConfidence) {
		gates = append(gates, DescribeConfidence(q))
	}
	return gates
}

// DescribeThreshold is the gate of a score below the threshold, which is in
// hundredths.
func DescribeThreshold(score float64, threshold int) contract.Gate {
	return contract.Gate{Gate: "threshold", Reason: fmt.Sprintf("score %.2f is below the threshold %.2f", score, toDecimal(threshold))}
}

// describeBreaker includes the remaining time, if the circuit breaker has not closed
// since the match.
func describeBreaker(s *LiveState, nowMS int64) string {
	if s == nil || s.OpenUntil() <= nowMS {
		return "breaker open"
	}
	seconds := (s.OpenUntil()-nowMS-1)/1000 + 1
	return fmt.Sprintf("breaker open for another %d s", seconds)
}

func describeCapacity(s *LiveState) string {
	if s == nil || s.Limit() <= 0 {
		return "at its limit of tasks in flight"
	}
	return fmt.Sprintf("at its limit of %s in flight", plaintext.CountNoun(s.Limit(), "task"))
}

func describeMissingScopes(required []string, c *contract.Caller) string {
	var missing []string
	for _, scope := range required {
		if !c.HasScope(scope) {
			missing = append(missing, scope)
		}
	}
	if len(missing) == 1 {
		return "needs scope " + missing[0]
	}
	return "needs scopes " + joinNames(missing)
}

func describeMissingClasses(required []string, q *Query) string {
	var missing []string
	for _, class := range required {
		if !slices.Contains(q.DataClasses, class) {
			missing = append(missing, class)
		}
	}
	return "needs " + joinNames(missing) + " in the request; not found"
}

func describeRefusedClasses(accepted contract.DataClasses, q *Query) string {
	refused := slices.Concat(q.DataClasses, q.InputClasses)
	refused = slices.DeleteFunc(refused, func(class string) bool { return slices.Contains(accepted, class) })
	slices.Sort(refused)
	return "does not accept " + joinNames(slices.Compact(refused)) + ", which the request contains"
}

// describeTenant names only the caller's own tenant, because callers may not learn
// which other tenants an agent serves.
func describeTenant(c *contract.Caller) string {
	if c.Tenant == "" {
		return "serves named tenants only; the caller's token names none"
	}
	return "does not serve tenant " + c.Tenant
}

// DescribeConfidence is the gate of a query whose confidence is too low.
func DescribeConfidence(q *Query) contract.Gate {
	return contract.Gate{Gate: "confidence", Reason: describeConfidence(q)}
}

func describeConfidence(q *Query) string {
	confidence, least := plaintext.FormatUnequal(q.Confidence, q.MinConfidence)
	return fmt.Sprintf("confidence %s is below the minimum %s", confidence, least)
}

// TieBreak returns the rule that orders a before b, or nil if their scores differ.
func (x *Index) TieBreak(a, b *Candidate) *contract.TieBreak {
	if a.Score != b.Score {
		return nil
	}
	tie := contract.TieBreak{Winner: x.agents[a.Ordinal].ID, Over: x.agents[b.Ordinal].ID}
	pa, pb := x.profiles[a.Ordinal], x.profiles[b.Ordinal]
	var why string
	switch priority, other := x.agents[a.Ordinal].Priority, x.agents[b.Ordinal].Priority; {
	case a.Matched != b.Matched:
		tie.Rule = "matched_domains"
		why = fmt.Sprintf("%s matches %s of the request, %s matches %d",
			tie.Winner, plaintext.CountNoun(int(a.Matched), "domain"), tie.Over, b.Matched)
	case pa.declaresAny != pb.declaresAny:
		tie.Rule = "specificity"
		why = fmt.Sprintf("%s declares any domain (\"*\"), %s names its domains", tie.Over, tie.Winner)
	case pa.labelCount != pb.labelCount:
		tie.Rule = "specificity"
		why = fmt.Sprintf("%s declares %d intents and domains, %s declares %d", tie.Winner, pa.labelCount, tie.Over, pb.labelCount)
	case priority != other:
		tie.Rule = "priority"
		why = fmt.Sprintf("%s has priority %d, %s has %d", tie.Winner, priority, tie.Over, other)
	default:
		tie.Rule = "id"
		why = tie.Winner + " comes first by id"
	}
	tie.Reason = fmt.Sprintf("both score %.2f: %s", toDecimal(int(a.Score)), why)
	return &tie
}

// joinNames formats names as in a sentence: a, b and c.
func joinNames(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

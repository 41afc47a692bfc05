package plan

import (
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/matcher"
)

// Recheck returns why an agent of the part may not get it now, "" if it may. in
// contains the registry in force, which may be newer than that of the plan. All gates
// apply again, except for the circuit breaker and the capacity of the agent: dispatch
// checks those for each task.
func Recheck(in *Input, part *Part, agentID string) (reason string) {
	q := in.newQuery()
	q.Intent, q.Domains, q.Confidence, q.Only = part.Intent, part.Domains, part.Confidence, agentID
	for i := 1; i < len(part.Alternatives); i++ {
		q.Tied = append(q.Tied, part.Alternatives[i].Intent)
	}
	var res matcher.Result
	in.Index.Nearest(&q, nil, &res)
	var candidate contract.Candidate
	switch hidden := res.Withheld(); {
	case res.N > 0 && res.Candidates[0].Eligible():
		return ""
	case res.N > 0:
		candidate = in.Index.Describe(&res.Candidates[0], &q, nil)
	case len(hidden) > 0:
		candidate = in.Index.Describe(&hidden[0], &q, nil)
	default:
		return "declares neither the intent nor a domain of the task any more"
	}
	reasons := make([]string, len(candidate.Gates))
	for i, g := range candidate.Gates {
		reasons[i] = g.Reason
	}
	return "may not get the task any more: " + strings.Join(reasons, "; ")
}

package workload

import (
	"context"
	"fmt"

	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/test/internal/process"
)

// VerifyReplicas verifies the audit log that the replicas share. The data directory of a
// replica has the keys of its own chain only, so each chain must verify with those of one
// replica, and may have no problem but the unknown key with those of the others.
func VerifyReplicas(ctx context.Context, replicas []*Replica) CheckResult {
	check := CheckResult{Name: "the audit log does not verify"}
	verified := map[string]bool{} // by the name of the chain
	for _, r := range replicas {
		out, err := process.RunCommand(ctx, r.Binary, "audit", "verify", "--config", r.Config, "--json")
		var all struct {
			Chains []audit.Report `json:"chains"`
		}
		if jsonErr := strictjson.UnmarshalAllowUnknown([]byte(out), &all); jsonErr != nil || len(all.Chains) == 0 {
			check.Violations = append(check.Violations, fmt.Sprintf("%v: %s", err, out))
			continue
		}
		for i := range all.Chains {
			chain := &all.Chains[i]
			verified[chain.Writer] = verified[chain.Writer] || chain.OK()
			for _, p := range chain.Problems {
				if p.Kind != audit.ProblemHeadUnknownKey {
					check.Violations = append(check.Violations, fmt.Sprintf("chain %s: %+v", chain.Writer, p))
				}
			}
		}
	}
	for name, ok := range verified {
		if !ok {
			check.Violations = append(check.Violations, fmt.Sprintf("chain %s verifies with the keys of no replica", name))
		}
	}
	return check
}

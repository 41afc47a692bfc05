package router

import (
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
)

// fallbackB is the wire name of policy B (003 §5).
const fallbackB = "B"

// fallBack answers a request nobody may serve. Policy B is the one there is: it
// explains, and neither a model nor an agent is asked.
func (r *Router) fallBack(resp *contract.Response, v *View, req *contract.Request, caller *contract.Caller, p *plan) {
	used := fallbackB
	resp.Status = contract.StatusUnsupported
	resp.Decision.FallbackUsed = &used
	resp.Data.Mode = contract.DataUnsupported
	resp.Data.Unsupported = fallback.Unsupported(&fallback.Unmet{
		Registry: v.Registry,
		Lexical:  v.Lexical,
		Caller:   caller,
		Prompt:   req.Content.Prompt,
		Only:     restriction(req),
		Decision: resp.Decision,
		Reason:   p.reason,
	})
}

package router

import (
	"context"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/router/plan"
)

// clarify asks the caller which reading is meant, and stores the options.
func (r *Router) clarify(ctx context.Context, resp *contract.Response, j *job, p *plan.Plan) {
	resp.Status = contract.StatusClarify
	resp.Data.Mode = contract.DataClarification
	resp.Data.Because = p.Reason
	resp.Data.Question = fallback.Question(p.Reason, j.view.Catalogue.Fallback.Language, j.locale, j.prompt)
	resp.Data.Options = p.Options
	if !j.dryRun() {
		r.questions.Store(ctx, j.req.RequestID, j.caller, p.Options)
	}
}

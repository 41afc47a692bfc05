package router

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/router/plan"
)

// question is what a caller was asked, and who it was.
type question struct {
	Tenant  string                         `json:"tenant"`
	Subject string                         `json:"subject"`
	Issuer  string                         `json:"issuer,omitempty"`
	Options []contract.ClarificationOption `json:"options"`
}

// questionKey names an open question in the store.
func questionKey(requestID string) string { return "question." + fingerprint(requestID) }

// clarify asks the caller which reading is meant, and remembers the options.
func (r *Router) clarify(ctx context.Context, resp *contract.Response, j *job, p *plan.Plan) {
	resp.Status = contract.StatusClarify
	resp.Data.Mode = contract.DataClarification
	resp.Data.Because = p.Reason
	resp.Data.Question = fallback.Question(p.Reason, j.view.Registry.Fallback.Language, j.locale, j.prompt)
	resp.Data.Options = p.Options
	if j.dryRun() || r.keep.Sessions == nil {
		return
	}
	q := question{Tenant: j.caller.Tenant, Subject: j.caller.Subject, Issuer: j.caller.Issuer, Options: p.Options}
	value, err := strictjson.Marshal(q)
	if err == nil {
		_, err = r.keep.Sessions.Put(ctx, questionKey(j.req.RequestID), value)
	}
	if err != nil {
		r.cfg.Logger.WarnContext(ctx, "the options of a clarification are not remembered", "request_id", j.req.RequestID, "err", err)
	}
}

// recallQuestion returns what was asked by that request, the zero value when
// nothing is known of it.
func (r *Router) recallQuestion(ctx context.Context, requestID string) (q question, err error) {
	if r.keep.Sessions == nil {
		return q, nil
	}
	entry, err := r.keep.Sessions.Get(ctx, questionKey(requestID))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return q, nil
	case err == nil:
		err = strictjson.Unmarshal(entry.Value, &q)
	}
	return q, err
}

// settleByChoice makes the classification of the option the caller chose. What
// the caller says is sure; whether an agent may serve it is still the matcher's.
func (r *Router) settleByChoice(ctx context.Context, j *job) error {
	choice := j.req.Clarification
	q, err := r.recallQuestion(ctx, choice.RequestID)
	if err != nil {
		return r.storeTrouble(ctx, "what was asked cannot be read", err)
	}
	e := &contract.Error{Code: contract.CodeInvalidRequest, Message: "the request is not valid"}
	asked := contract.Caller{Tenant: q.Tenant, Subject: q.Subject, Issuer: q.Issuer}
	if len(q.Options) == 0 || !asked.SamePrincipal(j.caller) {
		e.Add("/clarification/request_id", "names no open question: it is not known here, or too old; send the request again without clarification")
		return e
	}
	i := slices.IndexFunc(q.Options, func(o contract.ClarificationOption) bool { return o.ID == choice.OptionID })
	if i < 0 {
		e.Add("/clarification/option_id", "is not one of the options: "+strings.Join(optionIDs(q.Options), ", "))
		return e
	}
	j.settled = &settled{reason: ReasonClarified, clf: contract.Classification{
		Intent: q.Options[i].Intent, Domains: q.Options[i].Domains, Subtasks: []contract.Subtask{}, Confidence: 1,
	}}
	return nil
}

func optionIDs(options []contract.ClarificationOption) []string {
	ids := make([]string, len(options))
	for i := range options {
		ids[i] = options[i].ID
	}
	return ids
}

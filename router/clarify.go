package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// maxOptions bounds the readings a caller is asked about.
const maxOptions = 5

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
func (r *Router) clarify(ctx context.Context, resp *contract.Response, j *job, p *plan) {
	resp.Status = contract.StatusClarify
	resp.Data.Mode = contract.DataClarification
	resp.Data.Because = p.reason
	resp.Data.Question = fallback.Question(p.reason, j.view.Registry.Fallback.Language, j.locale, j.prompt)
	resp.Data.Options = p.options
	if j.dryRun() || r.keep.Sessions == nil {
		return
	}
	q := question{Tenant: j.caller.Tenant, Subject: j.caller.Subject, Issuer: j.caller.Issuer, Options: p.options}
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
	if len(q.Options) == 0 || !asked.Is(j.caller) {
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

// addOption appends a reading that is not there yet.
func addOption(options []contract.ClarificationOption, intent string, domains []string) []contract.ClarificationOption {
	known := slices.ContainsFunc(options, func(o contract.ClarificationOption) bool { return o.Intent == intent })
	if known || len(options) == maxOptions {
		return options
	}
	return append(options, contract.ClarificationOption{
		ID: strconv.Itoa(len(options) + 1), Label: optionLabel(intent, domains), Intent: intent, Domains: append([]string{}, domains...),
	})
}

// optionLabel says a reading for people: "code review (python)".
func optionLabel(intent string, domains []string) string {
	label := strings.ReplaceAll(intent, "_", " ")
	named := slices.DeleteFunc(slices.Clone(domains), func(d string) bool { return d == contract.Unknown })
	if len(named) == 0 {
		return label
	}
	return fmt.Sprintf("%s (%s)", label, strings.Join(named, ", "))
}

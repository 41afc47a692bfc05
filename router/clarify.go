package router

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
)

// maxOptions bounds the readings a caller is asked about.
const maxOptions = 5

// question is what a caller was asked, and who it was.
type question struct {
	tenant, subject string
	options         []contract.ClarificationOption
}

// clarify asks the caller which reading is meant, and remembers the options.
func (r *Router) clarify(resp *contract.Response, j *job, p *plan) {
	resp.Status = contract.StatusClarify
	resp.Data.Mode = contract.DataClarification
	resp.Data.Because = p.reason
	resp.Data.Question = fallback.Question(p.reason, j.view.Registry.Fallback.Language, j.locale, j.prompt)
	resp.Data.Options = p.options
	if j.dryRun() {
		return
	}
	q := question{tenant: j.caller.Tenant, subject: j.caller.Subject, options: p.options}
	r.asked.change(j.req.RequestID, func(question) question { return q })
}

// settleByChoice makes the classification of the option the caller chose. What
// the caller says is sure; whether an agent may serve it is still the matcher's.
func (r *Router) settleByChoice(j *job) error {
	choice := j.req.Clarification
	q := r.asked.recall(choice.RequestID)
	e := &contract.Error{Code: contract.CodeInvalidRequest, Message: "the request is not valid"}
	if len(q.options) == 0 || q.tenant != j.caller.Tenant || q.subject != j.caller.Subject {
		e.Add("/clarification/request_id", "names no open question: it is not known here, or too old; send the request again without clarification")
		return e
	}
	i := slices.IndexFunc(q.options, func(o contract.ClarificationOption) bool { return o.ID == choice.OptionID })
	if i < 0 {
		e.Add("/clarification/option_id", "is not one of the options: "+strings.Join(optionIDs(q.options), ", "))
		return e
	}
	j.settled = &settled{reason: ReasonClarified, clf: contract.Classification{
		Intent: q.options[i].Intent, Domains: q.options[i].Domains, Subtasks: []contract.Subtask{}, Confidence: 1,
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

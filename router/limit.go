package router

import (
	"github.com/caprouter/caprouter/contract"
)

// AnswerLimit says how many answers by a model (policy A) a caller may have. They
// cost more than a classification, and are asked for by whoever asks for what
// nobody does: so they are counted by themselves.
type AnswerLimit interface {
	// Take takes one, and reports whether there was one.
	Take(caller *contract.Caller) (contract.Limit, bool)
}

// allowance is what one request has of its caller's limit.
type allowance struct {
	limit   AnswerLimit // nil = there is none
	caller  *contract.Caller
	reached *contract.Limit // its state when it was reached; nil = it was not
}

// take reports whether the model may be asked.
func (a *allowance) take() bool {
	if a.limit == nil {
		return true
	}
	state, ok := a.limit.Take(a.caller)
	if !ok {
		a.reached = &state
	}
	return ok
}

// refusal is what the caller is told of a limit that was reached, nil where none
// was. Who was told that the request is accepted gets an answer without a model
// instead.
func (a *allowance) refusal(j *job) error {
	if a.reached == nil || j.tracked != nil {
		return nil
	}
	return &contract.Error{
		Code: contract.CodeRateLimited, Limit: a.reached,
		Message: "you have had as many direct answers by the model as you may for now: wait, or ask with options.fallback B",
	}
}

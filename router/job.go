package router

import (
	"time"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/redact"
)

// job is one accepted request: what the caller sent, what of it a model and a
// log may see, and what is known of it before anybody looks at its words.
type job struct {
	req     *contract.Request
	caller  *contract.Caller
	view    *View
	masking *redact.Masking
	prompt  string          // masked
	history []contract.Turn // masked: the request's, else the session's
	locale  string          // masked: nobody has looked at what it holds
	session session         // as it was when the request came; zero without one
	settled *settled        // what the request is, where that needs no classifier
	only    string          // the one agent that may be a candidate; "" = any
}

// settled is a classification that was made before, or by the caller's choice.
type settled struct {
	clf    contract.Classification
	reason string
}

// begin masks an accepted request and recalls what is remembered of it.
func (r *Router) begin(view *View, req *contract.Request, caller *contract.Caller) (*job, error) {
	j := &job{req: req, caller: caller, view: view, masking: r.redactor.Begin(), only: restriction(req)}
	if req.SessionID != "" {
		j.session = r.sessions.recall(sessionKey(req, caller))
	}
	j.mask()
	if err := r.settle(j); err != nil {
		return nil, err
	}
	return j, nil
}

// mask hides what nobody but the caller and entitled agents may see. The history
// comes first: it is the older text, so that its placeholders are.
func (j *job) mask() {
	turns := j.req.History
	if len(turns) == 0 {
		turns = j.session.turns
	}
	turns = turns[max(0, len(turns)-maxTurns):] // no model is shown more
	j.history = make([]contract.Turn, len(turns))
	for i, turn := range turns {
		j.history[i] = contract.Turn{Role: turn.Role, Content: j.masking.Mask(turn.Content)}
	}
	j.prompt = j.masking.Mask(j.req.Content.Prompt)
	j.locale = j.masking.Mask(j.req.Metadata.Locale)
}

// settle finds out whether the request needs a classifier at all: not when the
// caller chose a reading, nor when the session says what comes next.
func (r *Router) settle(j *job) error {
	if j.req.Clarification != nil {
		return r.settleByChoice(j)
	}
	if j.req.SessionID != "" {
		r.settleBySession(j)
	}
	return nil
}

// dryRun reports whether nothing may be touched.
func (j *job) dryRun() bool { return j.req.Options.DryRun }

func (j *job) classifierInput() classifier.Input {
	return classifier.Input{
		Prompt:   j.prompt,
		History:  j.history,
		Locale:   j.locale,
		Registry: j.view.Registry,
		Lexical:  j.view.Lexical,
	}
}

// now is the classification as it goes into the decision. No model and no
// words were asked for it now: it is as old as what it repeats.
func (s *settled) now() contract.Classification {
	clf := s.clf
	clf.Source, clf.Reason = contract.SourcePinned, s.reason
	clf.LatencyMS, clf.ModelUse, clf.Alternatives = 0, nil, nil
	return clf
}

// restriction is the one agent the caller wants, "" for any.
func restriction(req *contract.Request) string {
	if req.AgentID == nil {
		return ""
	}
	return *req.AgentID
}

// timeout is how long the request may take: its own wish, else the default.
func (r *Router) timeout(req *contract.Request) time.Duration {
	if ms := req.Options.TimeoutMS; ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return r.cfg.Timeout
}

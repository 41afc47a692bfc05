package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/feedback"
	"github.com/caprouter/caprouter/internal/visibility"
)

// FeedbackStore stores feedback. *feedback.Store implements it.
type FeedbackStore interface {
	Of(ctx context.Context, requestID string) ([]feedback.Entry, error)
	All(ctx context.Context) (map[string][]feedback.Entry, error)
	Put(ctx context.Context, requestID string, owner *contract.Caller, e feedback.Entry) (replaced *contract.Feedback, err error)
	Erase(ctx context.Context, requestID string) error
}

// noteExpectedNone follows the verdict in the note of an audit record if no agent is expected.
const noteExpectedNone = "none"

// RecordFeedback writes a verdict on a request to the audit log, without the comment. An
// error is for the caller, the log has its cause.
func (j *Journal) RecordFeedback(ctx context.Context, requestID, traceID string, f *contract.Feedback, caller *contract.Caller) error {
	note := string(f.Verdict)
	if f.ExpectedNone {
		note += " " + noteExpectedNone
	}
	rec := newRecord(audit.KindFeedback, caller)
	rec.RequestID, rec.TraceID, rec.Note, rec.Agents = requestID, traceID, note, f.ExpectedAgents
	return j.appendOnce(ctx, rec, "the feedback cannot be recorded; try again")
}

// AddFeedback stores the verdict of the caller on the decision about a request, instead of an
// earlier one of the same caller. The caller sent the request, or sees all requests. It
// returns conflict if there is no decision: not yet, or not any more.
func (s *Service) AddFeedback(ctx context.Context, id string, req *contract.FeedbackRequest, caller *contract.Caller) (*contract.Feedback, error) {
	found, err := s.findVisible(ctx, id, caller)
	if err != nil {
		return nil, err
	}
	if !visibility.MayEndRequest(caller, found.owner) {
		return nil, errNotOwner("give feedback on")
	}
	if err := s.checkExpected(req, caller); err != nil {
		return nil, err
	}
	resp, err := found.decided()
	if err != nil {
		return nil, err
	}
	entry := feedback.Entry{Issuer: caller.Issuer, Feedback: contract.Feedback{
		Verdict: req.Verdict, ExpectedAgents: append([]string{}, req.ExpectedAgents...), ExpectedNone: req.ExpectedNone, ExpectedIntent: req.ExpectedIntent,
		Comment: s.cfg.MaskText(req.Comment), Tenant: caller.Tenant, Subject: caller.Subject, At: s.cfg.Now().UTC(),
	}}
	earlier, err := s.feedbackOf(ctx, id, caller)
	if err != nil {
		return nil, err
	}
	if earlier != nil && sameFeedback(earlier, &entry.Feedback) {
		return earlier, nil
	}
	// Record the feedback before it is stored, so that no unrecorded feedback is counted or shown.
	if err := s.cfg.Recording.RecordFeedback(ctx, id, resp.TraceID, &entry.Feedback, caller); err != nil {
		return nil, err
	}
	replaced, err := s.cfg.Feedback.Put(ctx, id, found.owner, entry)
	if err != nil {
		if e, ok := errors.AsType[*contract.Error](err); ok {
			return nil, e
		}
		return nil, s.storeError(ctx, "the feedback cannot be stored", err)
	}
	if err := s.eraseLateFeedback(ctx, id, caller); err != nil {
		return nil, err
	}
	if replaced == nil || replaced.Verdict != entry.Feedback.Verdict {
		s.cfg.OnFeedback(entry.Feedback.Verdict)
	}
	return &entry.Feedback, nil
}

// checkExpected returns invalid_request if the caller does not see an expected agent, if the
// verdict is not misroute, if the request expects agents and none, or if the expected intent is
// not one of the one expected agent.
func (s *Service) checkExpected(req *contract.FeedbackRequest, caller *contract.Caller) error {
	if len(req.ExpectedAgents) > 0 && req.Verdict != contract.VerdictMisroute {
		return contract.InvalidRequest("/expected_agents", "is only for the verdict misroute")
	}
	switch {
	case req.ExpectedNone && req.Verdict != contract.VerdictMisroute:
		return contract.InvalidRequest("/expected_none", "is only for the verdict misroute")
	case req.ExpectedNone && len(req.ExpectedAgents) > 0:
		return contract.InvalidRequest("/expected_none", "contradicts expected_agents: send one of them")
	}
	e := contract.InvalidRequestDetails(nil)
	catalogue := s.cfg.Catalogue()
	agents := visibility.Visible(catalogue, caller)
	for i, agent := range req.ExpectedAgents {
		switch pointer := fmt.Sprintf("/expected_agents/%d", i); {
		case !agents.Has(agent):
			e.Add(pointer, "there is no such agent")
		case slices.Contains(req.ExpectedAgents[:i], agent):
			e.Add(pointer, "is given twice")
		}
	}
	switch {
	case len(e.Details) > 0 || req.ExpectedIntent == "":
	case len(req.ExpectedAgents) != 1:
		e.Add("/expected_intent", "needs one expected agent, whose intent it is")
	default:
		if intents := catalogue.Agent(req.ExpectedAgents[0]).Match.Intent; !slices.Contains(intents, req.ExpectedIntent) {
			e.Add("/expected_intent", "is no intent of the agent, which has "+strings.Join(intents, ", "))
		}
	}
	if len(e.Details) > 0 {
		return e
	}
	return nil
}

// decided returns the response to the request, or conflict if it has no decision.
func (f *storedRequest) decided() (*contract.Response, error) {
	resp, err := f.response()
	switch {
	case err != nil:
		return nil, err
	case resp.Decision != nil:
		return resp, nil
	case resp.Status.Terminal():
		return nil, &contract.Error{Code: contract.CodeConflict, Message: "the decision about the request is not stored: it was erased, its retention has passed, or the request was not routed"}
	}
	return nil, &contract.Error{Code: contract.CodeConflict, Message: "the request is not decided yet; try again"}
}

// feedbackOf returns the feedback of the caller on a request, nil if there is none.
func (s *Service) feedbackOf(ctx context.Context, id string, caller *contract.Caller) (*contract.Feedback, error) {
	entries, err := s.cfg.Feedback.Of(ctx, id)
	if err != nil {
		return nil, s.storeError(ctx, "the feedback cannot be read", err)
	}
	for i := range entries {
		if entries[i].Author().SamePrincipal(caller) {
			return &entries[i].Feedback, nil
		}
	}
	return nil, nil
}

// eraseLateFeedback removes feedback that was stored while its request was erased, which may
// have looked for feedback before.
func (s *Service) eraseLateFeedback(ctx context.Context, id string, caller *contract.Caller) error {
	found, err := s.findVisible(ctx, id, caller)
	if err == nil {
		_, err = found.decided()
	}
	e, ok := errors.AsType[*contract.Error](err)
	if !ok || e.Code != contract.CodeConflict && e.Code != contract.CodeNotFound {
		return nil // it is there, or it is not known to be erased
	}
	if eraseErr := s.cfg.Feedback.Erase(ctx, id); eraseErr != nil {
		return s.storeError(ctx, "the feedback cannot be erased", eraseErr)
	}
	return err
}

func sameFeedback(a, b *contract.Feedback) bool {
	return a.Verdict == b.Verdict && a.Comment == b.Comment && a.ExpectedNone == b.ExpectedNone && a.ExpectedIntent == b.ExpectedIntent &&
		slices.Equal(a.ExpectedAgents, b.ExpectedAgents)
}

// filterFeedback returns what the caller may see of the feedback on a request: that of its
// tenant, without agents that it may not see and their intents.
func filterFeedback(entries []feedback.Entry, caller *contract.Caller) []contract.Feedback {
	var visible []contract.Feedback
	for i := range entries {
		if !visibility.MaySeeTenant(caller, entries[i].Author()) {
			continue
		}
		f := entries[i].Feedback
		f.ExpectedAgents = []string{}
		for _, agent := range entries[i].Feedback.ExpectedAgents {
			if visibility.MaySeeAgent(caller, agent) {
				f.ExpectedAgents = append(f.ExpectedAgents, agent)
			}
		}
		if len(f.ExpectedAgents) == 0 {
			f.ExpectedIntent = ""
		}
		visible = append(visible, f)
	}
	return visible
}

// withFeedback returns the response with the feedback that the caller may see. An error of the
// store is logged: the response is more important.
func (s *Service) withFeedback(ctx context.Context, resp *contract.Response, caller *contract.Caller) *contract.Response {
	entries, err := s.cfg.Feedback.Of(ctx, resp.RequestID)
	if err != nil {
		_ = s.storeError(ctx, "the feedback cannot be read", err)
		return resp
	}
	visible := filterFeedback(entries, caller)
	if len(visible) == 0 {
		return resp
	}
	with := *resp // others may share it
	with.Feedback = visible
	return &with
}

package router

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/router/plan"
)

// When a session's request is classified anew (Config.SessionTrigger).
const (
	EveryRequest = "every_request" // always
	UserTurn     = "user_turn"     // when the prompt is not the one before, sent again
	NewSession   = "new_session"   // the first time only
)

// Reasons of a classification that was not made now.
const (
	ReasonClarified  = "clarified"   // the caller chose this reading
	ReasonNeedsInput = "needs_input" // the agent asked for this turn
	ReasonSession    = "session"     // the session's trigger says so
)

// Bounds of what is remembered. Histories serve to understand the next turn
// only, so their turns are shortened.
const (
	maxTurns        = 16
	maxUserTurn     = 2000 // bytes
	maxAssistant    = 500
	needsInputField = "needs_input"
)

// DefaultSessionTTL is how long a session is remembered after its last request.
const DefaultSessionTTL = 10 * time.Minute

// session is what is remembered of one caller's session. Its texts are masked:
// originals are not kept.
type session struct {
	Turns  []sessionTurn            `json:"turns"`
	Prompt []byte                   `json:"prompt"`          // SHA-256 of the last request's, for UserTurn
	Clf    *contract.Classification `json:"clf,omitempty"`   // the last one that was acted upon
	Waits  string                   `json:"waits,omitempty"` // the agent that asked for the next turn
	About  *contract.Classification `json:"about,omitempty"` // what that agent was asked
	Asked  bool                     `json:"asked"`           // the last answer was a clarification
}

// sessionTurn is a turn, and the request it is of.
type sessionTurn struct {
	contract.Turn
	RequestID string `json:"request_id"`
}

// said are the turns alone.
func (s *session) said() []contract.Turn {
	turns := make([]contract.Turn, len(s.Turns))
	for i := range s.Turns {
		turns[i] = s.Turns[i].Turn
	}
	return turns
}

// without is the session without what was said in one request.
func (s session) without(requestID string) session {
	s.Turns = slices.DeleteFunc(slices.Clone(s.Turns), func(t sessionTurn) bool { return t.RequestID == requestID })
	return s
}

// sessionKey is the key of the request's session, "" for one without.
func (j *job) sessionKey() string {
	if j.req.SessionID == "" {
		return ""
	}
	return sessionKey(j.req, j.caller)
}

// sessionKey names a session in the store. Callers choose their ids, so the
// caller is part of the name.
func sessionKey(req *contract.Request, caller *contract.Caller) string {
	return "session." + fingerprintOf(caller, req.SessionID)
}

// fingerprintOf is the fingerprint of a name the caller chose: who else chooses it
// does not get the same. Who vouches for the caller counts, if anybody does.
func fingerprintOf(caller *contract.Caller, name string) string {
	if caller.Issuer == "" {
		return fingerprint(caller.Tenant, caller.Subject, name)
	}
	return fingerprint(caller.Tenant, caller.Subject, name, caller.Issuer)
}

// fingerprint is the hex SHA-256 of the parts, told apart by their lengths.
func fingerprint(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// recall returns what is remembered of a session. What cannot be read is as good
// as forgotten: a request is understood without it, only worse.
func (r *Router) recall(ctx context.Context, key string) (s session) {
	if r.keep.Sessions == nil {
		return s
	}
	entry, err := r.keep.Sessions.Get(ctx, key)
	if err == nil {
		err = strictjson.Unmarshal(entry.Value, &s)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		r.cfg.Logger.WarnContext(ctx, "a session cannot be read", "err", err)
		return session{}
	}
	return s
}

// maxRaces is how often a session that others write at the same time is tried.
const maxRaces = 16

// change replaces what is remembered of a session by what becomes of it.
// Requests of one session that end at the same time each get their turn.
func (r *Router) change(ctx context.Context, key string, become func(session) session) error {
	for range maxRaces {
		var s session
		entry, err := r.keep.Sessions.Get(ctx, key)
		switch {
		case err == nil:
			if err := strictjson.Unmarshal(entry.Value, &s); err != nil {
				s = session{} // of another version: begun anew
			}
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
		value, err := strictjson.Marshal(become(s))
		if err != nil {
			return err
		}
		if entry.Revision == 0 {
			_, err = r.keep.Sessions.Create(ctx, key, value)
		} else {
			_, err = r.keep.Sessions.Update(ctx, key, value, entry.Revision)
		}
		if !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return store.ErrConflict
}

// settleBySession reuses the session's classification where its last turn or the
// trigger says so. A caller who names an agent wants that agent for this turn.
func (r *Router) settleBySession(j *job) {
	s := &j.session
	switch {
	case s.Waits != "" && s.About != nil && (j.only == "" || j.only == s.Waits) && j.mayStillUse(s.Waits):
		j.only = s.Waits
		j.settled = &settled{clf: *s.About, reason: ReasonNeedsInput}
	case s.Clf == nil || j.only != "":
	case r.cfg.SessionTrigger == NewSession,
		r.cfg.SessionTrigger == UserTurn && bytes.Equal(s.Prompt, promptSum(j.prompt)):
		j.settled = &settled{clf: retitled(*s.Clf, j.prompt), reason: ReasonSession}
	}
}

// mayStillUse reports whether the agent is still there, for this caller. One that
// is gone waits for nothing; one that is only down, or that a gate keeps out, is
// still the one that was promised the turn.
func (j *job) mayStillUse(agentID string) bool {
	return j.view.Registry.Agent(agentID) != nil && j.caller.MayUse(agentID)
}

// retitled gives the subtasks of a classification that is used again the title
// of the new prompt: theirs is cut out of the old one.
func retitled(clf contract.Classification, prompt string) contract.Classification {
	clf.Subtasks = slices.Clone(clf.Subtasks)
	for i := range clf.Subtasks {
		clf.Subtasks[i].Title, clf.Subtasks[i].Reason = contract.SubtaskTitle(prompt), ""
	}
	return clf
}

// remember keeps what the session's next turn needs.
func (r *Router) remember(ctx context.Context, j *job, resp *contract.Response, p *plan.Plan, runs []plan.Outcome) {
	if j.req.SessionID == "" || j.dryRun() || r.keep.Sessions == nil {
		return
	}
	ctx, cancel := j.closing(ctx)
	defer cancel()
	err := r.change(ctx, sessionKey(j.req, j.caller), func(s session) session { return s.after(j, resp, p, runs) })
	if err != nil {
		r.cfg.Logger.WarnContext(ctx, "a session is not remembered", "request_id", resp.RequestID, "err", err)
	}
}

// after is the session when a request of it has ended.
func (s session) after(j *job, resp *contract.Response, p *plan.Plan, runs []plan.Outcome) session {
	s.Turns = appendTurn(s.Turns, resp.RequestID, "user", j.prompt, maxUserTurn)
	if answer := resp.Data.Answer; answer != "" {
		// Cut first, answers may be long; but not so short that half of what
		// is to be masked would stand at the end.
		s.Turns = appendTurn(s.Turns, resp.RequestID, "assistant", j.masking.MaskText(shortened(answer, 4*maxAssistant)), maxAssistant)
	}
	s.Prompt = promptSum(j.prompt)
	s.Asked = resp.Status == contract.StatusClarify
	if j.waitedFor() && len(p.Parts) > 0 && !slices.ContainsFunc(runs, answered) {
		return s // the agent has not had its turn: it may be sent again
	}
	s.Waits, s.About = "", nil
	if len(p.Parts) > 0 {
		clf := p.Decision.Classification
		s.Clf = &clf
		s.Waits, s.About = asking(p, runs)
	}
	return s
}

func promptSum(prompt string) []byte {
	sum := sha256.Sum256([]byte(prompt))
	return sum[:]
}

// waitedFor reports whether this is the turn an agent asked for.
func (j *job) waitedFor() bool { return j.settled != nil && j.settled.reason == ReasonNeedsInput }

func answered(t plan.Outcome) bool { return t.Result != nil }

// asking finds the first agent that ended with data.needs_input, and what it
// had been asked.
func asking(p *plan.Plan, runs []plan.Outcome) (string, *contract.Classification) {
	for i := range runs {
		if result := runs[i].Result; result == nil || string(result.Data[needsInputField]) != "true" {
			continue
		}
		about := p.Decision.Classification
		about.Intent, about.Domains, about.Subtasks = p.Parts[i].Intent, p.Parts[i].Domains, []contract.Subtask{}
		return runs[i].Report.AgentID, &about
	}
	return "", nil
}

// appendTurn never writes to the turns it is given: requests of the same session
// may be reading them.
func appendTurn(turns []sessionTurn, requestID, role, text string, most int) []sessionTurn {
	if len(turns) >= maxTurns {
		turns = turns[len(turns)-maxTurns+1:]
	}
	return append(slices.Clip(turns), sessionTurn{contract.Turn{Role: role, Content: shortened(text, most)}, requestID})
}

// shortened cuts a text to so many bytes, at a character.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

package router

import (
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// When a session's request is classified anew (SessionConfig.Trigger).
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
	maxSessions     = 4096
	maxAsked        = 16384
	maxTurns        = 16
	maxUserTurn     = 2000 // bytes
	maxAssistant    = 500
	needsInputField = "needs_input"
)

// DefaultSessionTTL is how long a session is remembered after its last request.
const DefaultSessionTTL = 10 * time.Minute

// SessionConfig says what is remembered between requests; its zero value works.
type SessionConfig struct {
	TTL     time.Duration // 0 = DefaultSessionTTL
	Trigger string        // "" = EveryRequest
}

// session is what is remembered of one caller's session. Its texts are masked:
// originals are not kept.
type session struct {
	turns  []contract.Turn
	prompt [sha256.Size]byte        // of the last request's, for UserTurn
	clf    *contract.Classification // the last one that was acted upon
	waits  string                   // the agent that asked for the next turn
	about  *contract.Classification // what that agent was asked
	asked  bool                     // the last answer was a clarification
}

// sessionID names a session. Callers choose their ids, so the caller is part of
// the name.
type sessionID struct{ tenant, subject, id string }

func sessionKey(req *contract.Request, caller *contract.Caller) sessionID {
	return sessionID{caller.Tenant, caller.Subject, req.SessionID}
}

// settleBySession reuses the session's classification where its last turn or the
// trigger says so. A caller who names an agent wants that agent for this turn.
func (r *Router) settleBySession(j *job) {
	s := &j.session
	switch {
	case s.waits != "" && (j.only == "" || j.only == s.waits) && j.mayStillUse(s.waits):
		j.only = s.waits
		j.settled = &settled{clf: *s.about, reason: ReasonNeedsInput}
	case s.clf == nil || j.only != "":
	case r.cfg.Session.Trigger == NewSession,
		r.cfg.Session.Trigger == UserTurn && s.prompt == sha256.Sum256([]byte(j.prompt)):
		j.settled = &settled{clf: retitled(*s.clf, j.prompt), reason: ReasonSession}
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
		clf.Subtasks[i].Title, clf.Subtasks[i].Reason = titleOf(prompt), ""
	}
	return clf
}

// remember keeps what the session's next turn needs.
func (r *Router) remember(j *job, resp *contract.Response, p *plan, runs []taskRun) {
	if j.req.SessionID == "" || j.dryRun() {
		return
	}
	r.sessions.change(sessionKey(j.req, j.caller), func(s session) session {
		s.turns = appendTurn(s.turns, "user", j.prompt, maxUserTurn)
		if answer := resp.Data.Answer; answer != "" {
			// Cut first, answers may be long; but not so short that half of what
			// is to be masked would stand at the end.
			s.turns = appendTurn(s.turns, "assistant", j.masking.Mask(shortened(answer, 4*maxAssistant)), maxAssistant)
		}
		s.prompt = sha256.Sum256([]byte(j.prompt))
		s.asked = resp.Status == contract.StatusClarify
		if j.waitedFor() && len(p.parts) > 0 && !slices.ContainsFunc(runs, answered) {
			return s // the agent has not had its turn: it may be sent again
		}
		s.waits, s.about = "", nil
		if len(p.parts) > 0 {
			clf := p.decision.Classification
			s.clf = &clf
			s.waits, s.about = waiting(p, runs)
		}
		return s
	})
}

// waitedFor reports whether this is the turn an agent asked for.
func (j *job) waitedFor() bool { return j.settled != nil && j.settled.reason == ReasonNeedsInput }

func answered(t taskRun) bool { return t.result != nil }

// waiting finds the first agent that ended with data.needs_input, and what it
// had been asked.
func waiting(p *plan, runs []taskRun) (string, *contract.Classification) {
	for i := range runs {
		if result := runs[i].result; result == nil || string(result.Data[needsInputField]) != "true" {
			continue
		}
		about := p.decision.Classification
		about.Intent, about.Domains, about.Subtasks = p.parts[i].intent, p.parts[i].domains, []contract.Subtask{}
		return runs[i].report.AgentID, &about
	}
	return "", nil
}

// appendTurn never writes to the turns it is given: requests of the same session
// may be reading them.
func appendTurn(turns []contract.Turn, role, text string, most int) []contract.Turn {
	if len(turns) >= maxTurns {
		turns = turns[len(turns)-maxTurns+1:]
	}
	return append(slices.Clip(turns), contract.Turn{Role: role, Content: shortened(text, most)})
}

// shortened cuts a text to so many bytes, at a character.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

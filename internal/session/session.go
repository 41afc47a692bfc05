package session

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
)

// Triggers of a new classification of a session's request.
const (
	EveryRequest = "every_request" // always
	UserTurn     = "user_turn"     // unless the prompt is the last one, sent again
	NewSession   = "new_session"   // the first request only
)

// Reasons of a pinned classification.
const (
	ReasonClarified  = "clarified"   // the caller chose this reading
	ReasonNeedsInput = "needs_input" // the agent asked for this turn
	ReasonSession    = "session"     // the trigger reuses the last one
)

// MaxTurns is how many turns a session stores and a classifier gets.
const MaxTurns = 16

// Turns are shortened, because they only help to understand the next one.
const (
	maxUserBytes      = 2000
	maxAssistantBytes = 500
)

// needsInputField is the member of a result's data by which an agent asks for the
// next turn.
const needsInputField = "needs_input"

// Session is the stored state of one session of a caller. Its methods return new
// values and never change the stored slices, because requests of the same session
// may read them.
type Session struct {
	Owner          quota.Owner              `json:"owner,omitzero"` // whose share of the store it uses; set by Store
	Turns          []Turn                   `json:"turns"`
	PromptHash     []byte                   `json:"prompt"`          // SHA-256 of the last prompt, for UserTurn
	Classification *contract.Classification `json:"clf,omitempty"`   // the last one with tasks
	WaitingAgent   string                   `json:"waits,omitempty"` // the agent that asked for the next turn
	WaitingFor     *contract.Classification `json:"about,omitempty"` // the task of that agent
	AskedCaller    bool                     `json:"asked"`           // the last response was a clarification

	LastRequest  string `json:"last,omitempty"`   // the request with PromptHash
	ClassifiedBy string `json:"clf_by,omitempty"` // the request with Classification and WaitingFor
}

// Turn is one turn of the conversation.
type Turn struct {
	contract.Turn
	RequestID string `json:"request_id"`
}

// FromHistory returns a session with the turns only.
func FromHistory(turns []contract.Turn) Session {
	s := Session{Turns: make([]Turn, len(turns))}
	for i, turn := range turns {
		s.Turns[i].Turn = turn
	}
	return s
}

// History returns the turns, oldest first.
func (s *Session) History() []contract.Turn {
	turns := make([]contract.Turn, len(s.Turns))
	for i := range s.Turns {
		turns[i] = s.Turns[i].Turn
	}
	return turns
}

// Previous returns the classification of the last request, or nil if it was not
// dispatched.
func (s *Session) Previous() *contract.Classification {
	if s.LastRequest == "" || s.ClassifiedBy != s.LastRequest {
		return nil
	}
	return s.Classification
}

// Pinned is a classification that is used instead of a new one.
type Pinned struct {
	Classification contract.Classification
	Reason         string
}

// Current returns the classification for a decision. Neither a model nor the
// lexical classifier was used, so there is nothing to report about them.
func (p *Pinned) Current() contract.Classification {
	c := p.Classification
	c.Source, c.Reason = contract.SourcePinned, p.Reason
	c.LatencyMS, c.ModelUse, c.Evidence = 0, nil, nil
	if !c.Tied { // tied intents are as likely as before
		c.Alternatives = nil
	}
	return c
}

// Next is the next request of a session.
type Next struct {
	Trigger   string // EveryRequest …
	Prompt    string // masked
	OnlyAgent string // the agent that the caller asks for; "" = any
	// MayUse reports whether the agent is registered and the caller may use it. An
	// agent that is down, or fails a gate, still gets the turn it asked for.
	MayUse func(agentID string) bool
	// Reclassify asks for a new classification.
	Reclassify bool
	// SureIntent returns the intent that the prompt means almost certainly, "" if
	// there is none; nil = never. It is called only if a classification would be
	// reused.
	SureIntent func() string
}

// Pin returns the classification that the next request reuses, or nil if it must be
// classified. If an agent asked for this turn, only that agent may serve it: its id
// is returned. A caller that asks for another agent gets that one. A prompt that
// almost certainly means another intent is classified.
func (s *Session) Pin(next Next) (pinned *Pinned, agent string) {
	if next.Reclassify {
		return nil, ""
	}
	pinned, agent = s.pin(&next)
	if pinned == nil {
		return nil, ""
	}
	if next.SureIntent != nil {
		if sure := next.SureIntent(); sure != "" && !pinned.means(sure) {
			return nil, ""
		}
	}
	return pinned, agent
}

// means reports whether the intent is one of the classification, or tied with it.
func (p *Pinned) means(intent string) bool {
	c := &p.Classification
	isIntent := func(s contract.IntentScore) bool { return s.Intent == intent }
	return c.Intent == intent || c.Tied && slices.ContainsFunc(c.Alternatives, isIntent) ||
		slices.ContainsFunc(c.Subtasks, func(s contract.Subtask) bool {
			return s.Intent == intent || s.Tied && slices.ContainsFunc(s.Alternatives, isIntent)
		})
}

func (s *Session) pin(next *Next) (pinned *Pinned, agent string) {
	agent = s.WaitingAgent
	switch {
	case agent != "" && s.WaitingFor != nil && (next.OnlyAgent == "" || next.OnlyAgent == agent) && next.MayUse(agent):
		return &Pinned{Classification: *s.WaitingFor, Reason: ReasonNeedsInput}, agent
	case s.Classification == nil || next.OnlyAgent != "":
	case next.Trigger == NewSession, next.Trigger == UserTurn && bytes.Equal(s.PromptHash, hashPrompt(next.Prompt)):
		return &Pinned{Classification: replaceTitles(*s.Classification, next.Prompt), Reason: ReasonSession}, ""
	}
	return nil, ""
}

// replaceTitles replaces the titles of the subtasks, which are parts of the old prompt.
// A part of the old prompt that was not understood has no meaning for the next one.
func replaceTitles(c contract.Classification, prompt string) contract.Classification {
	c.Subtasks = slices.DeleteFunc(slices.Clone(c.Subtasks), func(s contract.Subtask) bool { return s.Intent == contract.Unknown })
	for i := range c.Subtasks {
		c.Subtasks[i].Title, c.Subtasks[i].Reason = contract.SubtaskTitle(prompt), ""
	}
	return c
}

// Ended is a request of a session that has ended.
type Ended struct {
	RequestID      string
	Prompt         string                   // masked
	Response       *contract.Response       // its answer is not masked
	MaskText       func(text string) string // masks the answer
	Pinned         *Pinned                  // what the request used instead of a new classification
	Classification *contract.Classification // set if the plan has tasks
	Tasks          []Task
}

// Task is one task of a request that has ended.
type Task struct {
	AgentID      string
	Intent       string
	Domains      []string
	Confidence   float64
	Alternatives []contract.IntentScore // the tied intents, likeliest first
	Result       *contract.Result       // nil if no agent returned one
}

// After returns the session after the request has ended.
func (s Session) After(e *Ended) Session {
	s.Turns = appendTurn(s.Turns, e.RequestID, "user", e.Prompt, maxUserBytes)
	if answer := e.Response.Data.Answer; answer != "" {
		// Answers may be long: shorten before masking, but leave enough that a
		// value to mask is not cut in half where the turn ends.
		s.Turns = appendTurn(s.Turns, e.RequestID, "assistant", e.MaskText(truncateText(answer, 4*maxAssistantBytes)), maxAssistantBytes)
	}
	s.PromptHash, s.LastRequest = hashPrompt(e.Prompt), e.RequestID
	s.AskedCaller = e.Response.Status == contract.StatusClarify
	if e.Classification != nil && e.Pinned != nil && e.Pinned.Reason == ReasonNeedsInput && !e.hasResult() {
		return s // the agent that asked for this turn has not got it: it may be sent again
	}
	s.WaitingAgent, s.WaitingFor = "", nil
	if e.Classification != nil {
		s.Classification, s.ClassifiedBy = e.Classification, e.RequestID
		s.WaitingAgent, s.WaitingFor = e.waitingAgent()
	}
	return s
}

// Without returns the session without what it contains of one request: its turns, the hash
// of its prompt, and its classification, of which the titles are parts of the prompt. A
// session of an earlier version does not name the request of these.
func (s Session) Without(requestID string) Session {
	s.Turns = slices.DeleteFunc(slices.Clone(s.Turns), func(t Turn) bool { return t.RequestID == requestID })
	if s.LastRequest == requestID || s.LastRequest == "" {
		s.PromptHash = nil
	}
	if s.ClassifiedBy == requestID || s.ClassifiedBy == "" {
		s.Classification, s.WaitingAgent, s.WaitingFor = nil, "", nil
	}
	return s
}

func (e *Ended) hasResult() bool {
	return slices.ContainsFunc(e.Tasks, func(t Task) bool { return t.Result != nil })
}

// waitingAgent returns the first agent that asks for input, and its task.
func (e *Ended) waitingAgent() (string, *contract.Classification) {
	for i := range e.Tasks {
		t := &e.Tasks[i]
		if t.Result == nil || string(t.Result.Data[needsInputField]) != "true" {
			continue
		}
		task := *e.Classification
		task.Intent, task.Domains, task.Subtasks = t.Intent, t.Domains, []contract.Subtask{}
		task.Confidence, task.Alternatives, task.Tied = t.Confidence, nil, false
		if len(t.Alternatives) > 0 {
			task.Confidence, task.Alternatives, task.Tied = t.Alternatives[0].Confidence, t.Alternatives[1:], true
		}
		return t.AgentID, &task
	}
	return "", nil
}

func hashPrompt(prompt string) []byte {
	sum := sha256.Sum256([]byte(prompt))
	return sum[:]
}

func appendTurn(turns []Turn, requestID, role, text string, maxBytes int) []Turn {
	if len(turns) >= MaxTurns {
		turns = turns[len(turns)-MaxTurns+1:]
	}
	return append(slices.Clip(turns), Turn{contract.Turn{Role: role, Content: truncateText(text, maxBytes)}, requestID})
}

// truncateText cuts the text between two characters.
func truncateText(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxBytes], "") + "…"
}

package history

import (
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/responsejson"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Content is the part of an audit record that can be erased. See encodeContent.
type Content struct {
	Prompt   string             `json:"prompt,omitempty"`  // masked
	Session  string             `json:"session,omitempty"` // its key in the store
	Decision *contract.Decision `json:"decision,omitempty"`
	Response *contract.Response `json:"response,omitempty"` // masked, with the logs of the agents
	ShowLogs bool               `json:"logs,omitzero"`      // the caller gets them
	// Owner is the process that made the decision, if several share the store.
	Owner string `json:"owner,omitempty"`
}

// clearAnswer is the part of a response that is masked in Content, as the caller received
// it.
type clearAnswer struct {
	Tasks []contract.TaskReport `json:"tasks"`
	Data  contract.ResponseData `json:"data"`
}

// EncodedResponse is a response that is ready to be recorded.
type EncodedResponse struct {
	record   audit.Record
	response *contract.Response
	json     []byte // of the response; nil if the record contains another text
}

// JSON returns the encoding of a response that the record contains unchanged, so that it
// need not be encoded again for the caller, or nil.
func (r *EncodedResponse) JSON(resp *contract.Response) []byte {
	if resp == nil || r.response != resp {
		return nil
	}
	return r.json
}

// EncodeResponse returns the record of a response, which must not be changed any more.
func EncodeResponse(s Subject, resp *contract.Response) EncodedResponse {
	rec := newRecord(audit.KindOutcome, s.Caller)
	if resp.Decision != nil {
		addDecision(&rec, resp.Decision)
	}
	rec.Agents = addTaskAgents(rec.Agents, resp.Tasks)
	rec.RequestID, rec.TraceID, rec.Status = resp.RequestID, resp.TraceID, resp.Status
	encoded := EncodedResponse{response: resp}
	masked := maskResponse(resp, s.Masking)
	c := Content{Prompt: s.Prompt, Session: s.SessionKey, ShowLogs: s.ShowLogs}
	content, response := encodeContent(c, "response", masked, responsejson.Append)
	if rec.Content = content; masked == resp {
		encoded.json = response
	} else {
		rec.Answer = encodeJSON(clearAnswer{Tasks: resp.Tasks, Data: resp.Data})
	}
	if max(len(rec.Content), len(rec.Answer)) > audit.MaxContentSize {
		short := *masked
		short.Data.Results, short.Data.Answer = nil, ""
		rec.Content, _ = encodeContent(c, "response", &short, responsejson.Append)
		rec.Answer = nil
		rec.Note = "the answer was too long to be kept"
	}
	encoded.record = rec
	return encoded
}

// newRecord returns a record about an act of the caller.
func newRecord(kind audit.Kind, caller *contract.Caller) audit.Record {
	return audit.Record{Kind: kind, Tenant: caller.Tenant, Subject: caller.Subject, Issuer: caller.Issuer}
}

// addDecision adds the facts of a decision to its record. They remain when the content is
// erased, so they contain no text of the caller.
func addDecision(rec *audit.Record, d *contract.Decision) {
	rec.DecisionID, rec.RegistryVersion, rec.Agents = d.DecisionID, d.RegistryVersion, d.Chosen
	rec.Intent, rec.Domains = d.Classification.Intent, d.Classification.Domains
	if d.FallbackUsed != nil {
		rec.FallbackUsed = *d.FallbackUsed
	}
}

// typicalSize is the usual size of an encoded content, in bytes.
const typicalSize = 3 << 10

// encodeContent returns the content as JSON with one more member, the decision or the response,
// and the encoding of that member alone. They share memory, because encoding is a large part of
// the cost of a record. If a number is not finite, the member is null, and has no encoding.
func encodeContent[T any](c Content, name string, value *T, appendJSON func([]byte, *T) ([]byte, error)) (content, member []byte) {
	others := encodeJSON(c)
	out := append(make([]byte, 0, len(others)+typicalSize), others[:len(others)-1]...)
	if len(out) > 1 {
		out = append(out, ',')
	}
	out = append(append(append(out, '"'), name...), '"', ':')
	start := len(out)
	if encoded, err := appendJSON(out, value); err == nil {
		out, member = encoded, encoded[start:len(encoded):len(encoded)]
	} else {
		out = append(out, "null"...)
	}
	return append(out, '}'), member
}

// encodeJSON returns v as JSON. It cannot fail for the types of this package.
func encodeJSON(v any) []byte {
	data, err := strictjson.Marshal(v)
	if err != nil {
		return nil
	}
	return data
}

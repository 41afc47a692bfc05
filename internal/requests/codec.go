package requests

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// storedRecord is a record as JSON in the store.
type storedRecord struct {
	*Record
	// Write is a member that earlier versions wrote.
	Write string `json:"write,omitempty"`
}

func encodeRecord(id string, r *Record) ([]byte, error) {
	r.Version = recordVersion
	if err := r.check(id); err != nil {
		return nil, err
	}
	return strictjson.Marshal(storedRecord{Record: r})
}

// decodeRecord reads a record and checks that it is consistent, because every
// transition relies on that.
func decodeRecord(id string, data []byte) (*Record, error) {
	s := storedRecord{Record: new(Record)}
	if err := strictjson.UnmarshalDeep(data, &s); err != nil {
		return nil, err
	}
	r := s.Record
	if err := r.check(id); err != nil {
		return nil, err
	}
	r.Request.RequestID, r.Request.TraceID = r.ID, r.TraceID
	return r, nil
}

// check returns an error if no sequence of transitions leads to this record.
func (r *Record) check(id string) error {
	ended := r.State.Terminal()
	switch {
	case r.Version != recordVersion:
		return fmt.Errorf("format version %d, want %d", r.Version, recordVersion)
	case r.ID != id:
		return fmt.Errorf("it is the record of request %.150q", r.ID)
	case !ended && r.State != StateAccepted && r.State != StatePlanned && r.State != StateRunning:
		return fmt.Errorf("unknown state %q", r.State)
	case ended != (r.Response != nil):
		return fmt.Errorf("state %s with a response: %t", r.State, r.Response != nil)
	case r.Decision == nil && (len(r.Parts) > 0 || r.State == StatePlanned || r.State == StateRunning):
		return fmt.Errorf("state %s with %d parts and no decision", r.State, len(r.Parts))
	case r.Epoch < 0:
		return fmt.Errorf("negative epoch %d", r.Epoch)
	}
	seen := make(map[string]bool, len(r.Tasks))
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if err := t.check(len(r.Parts), ended); err != nil {
			return fmt.Errorf("task %q: %w", t.ID, err)
		}
		if seen[t.ID] {
			return fmt.Errorf("task %q occurs twice", t.ID)
		}
		seen[t.ID] = true
	}
	return nil
}

func (t *Task) check(parts int, ended bool) error {
	delivered := t.Result != nil || ended && t.ResultHash != "" // an ended request has only the hash
	switch {
	case t.ID == "" || t.AgentID == "":
		return errors.New("no id or no agent")
	case t.Part < 0 || t.Part >= parts:
		return fmt.Errorf("unknown part %d", t.Part)
	case t.State != TaskSent && t.State != TaskWaiting && t.State != TaskDone:
		return fmt.Errorf("unknown state %q", t.State)
	case delivered && t.Err != nil:
		return errors.New("both a result and an error")
	case (t.State == TaskDone) != (delivered || t.Err != nil):
		return fmt.Errorf("state %s and outcome do not match", t.State)
	case delivered != (t.ResultHash != ""):
		return errors.New("result and hash do not match")
	case t.Pull != nil && (t.State == TaskSent || t.Pull.Leases < 0):
		return fmt.Errorf("state %s after %d leases", t.State, t.Pull.Leases)
	}
	return nil
}

// hashResult returns the SHA-256 of the result as canonical JSON (sorted members, no
// white space, numbers as doubles, as in RFC 8785), so that the same result in
// another spelling has the same hash. The task id is left out, because a direct reply
// need not contain it. The hash of nil is "".
func hashResult(res *contract.Result) (string, error) {
	if res == nil {
		return "", nil
	}
	encode := encodeCanonical
	if hasOneSpelling(res.Data) {
		encode = encodeSorted
	}
	data, err := encode(res)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// encodeCanonical decodes and encodes the JSON of the result once more, because Marshal
// copies raw members of data as they are. Decoding fails for a number beyond a double;
// then the spelling counts.
func encodeCanonical(res *contract.Result) ([]byte, error) {
	anonymous := *res
	anonymous.TaskID = ""
	data, err := strictjson.Marshal(&anonymous)
	if err != nil {
		return nil, err
	}
	var value any
	if strictjson.UnmarshalDeep(data, &value) == nil {
		return strictjson.Marshal(value)
	}
	return data, nil
}

// encodeSorted is encodeCanonical for a result whose data has one spelling. It takes less
// than half of the time, and the hash is computed for every task.
func encodeSorted(res *contract.Result) ([]byte, error) {
	return strictjson.Marshal(&struct { // sorted by name
		Data         map[string]json.RawMessage `json:"data,omitempty"`
		Explanations []string                   `json:"explanations,omitempty"`
		Logs         []string                   `json:"logs,omitempty"`
		Metrics      map[string]float64         `json:"metrics,omitempty"`
		Status       contract.ResultStatus      `json:"status"`
	}{res.Data, res.Explanations, res.Logs, res.Metrics, res.Status})
}

// hasOneSpelling reports whether all values are strings without escape sequences, which
// is common, or literals.
func hasOneSpelling(data map[string]json.RawMessage) bool {
	for _, value := range data {
		switch {
		case string(value) == "true", string(value) == "false", string(value) == "null":
		case len(value) < 2, value[0] != '"', value[len(value)-1] != '"', bytes.IndexByte(value, '\\') >= 0:
			return false
		}
	}
	return true
}

// ResultHash returns the hash by which records compare results, or "" if the result
// cannot be encoded.
func ResultHash(res *contract.Result) string {
	hash, err := hashResult(res)
	if err != nil {
		return ""
	}
	return hash
}

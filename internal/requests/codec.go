package requests

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// stored is a record as it lies in the store.
type stored struct {
	*Record
	// Write is another one with every write, so that who wrote can tell its own
	// writing from somebody else's same words.
	Write string `json:"write"`
}

// encode makes a new writing of the record.
func encode(r *Record) ([]byte, error) {
	r.Version = recordVersion
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("encode request %s: %w", r.ID, err)
	}
	data, err := strictjson.Marshal(stored{Record: r, Write: rand.Text()})
	if err != nil {
		return nil, fmt.Errorf("encode request %s: %w", r.ID, err)
	}
	return data, nil
}

// sameRecord reports whether two writings hold the same record: they differ in
// nothing but the last member.
func sameRecord(a, b []byte) bool {
	const tail = len(`"write":"12345678901234567890123456"}`)
	return len(a) == len(b) && len(a) > tail && bytes.Equal(a[:len(a)-tail], b[:len(b)-tail])
}

// decode reads a record and checks that it hangs together: what is done with one
// rests on that.
func decode(data []byte) (*Record, error) {
	s := stored{Record: new(Record)}
	if err := strictjson.Unmarshal(data, &s); err != nil {
		return nil, err
	}
	r := s.Record
	if err := r.check(); err != nil {
		return nil, err
	}
	r.Request.RequestID, r.Request.TraceID = r.ID, r.TraceID
	return r, nil
}

// check finds what no sequence of transitions leads to.
func (r *Record) check() error {
	ended := r.State.Terminal()
	switch {
	case r.Version != recordVersion:
		return fmt.Errorf("it is of form %d, and this version reads form %d", r.Version, recordVersion)
	case !validID(r.ID):
		return fmt.Errorf("%q is no id of a request", r.ID)
	case !ended && r.State != StateAccepted && r.State != StatePlanned && r.State != StateRunning:
		return fmt.Errorf("there is no state %q", r.State)
	case ended != (r.Response != nil):
		return errors.New("an answer and an end go together")
	case r.Decision == nil && (len(r.Parts) > 0 || r.State == StatePlanned || r.State == StateRunning):
		return fmt.Errorf("it is %s with %d parts, and nothing was decided", r.State, len(r.Parts))
	case r.Epoch < 0:
		return errors.New("its epoch is less than nothing")
	}
	seen := make(map[string]bool, len(r.Tasks))
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if err := t.check(len(r.Parts)); err != nil {
			return fmt.Errorf("task %q: %w", t.ID, err)
		}
		if seen[t.ID] {
			return fmt.Errorf("task %q is there twice", t.ID)
		}
		seen[t.ID] = true
	}
	return nil
}

func (t *Task) check(parts int) error {
	switch {
	case t.ID == "" || t.AgentID == "":
		return errors.New("it is without a name")
	case t.Part < 0 || t.Part >= parts:
		return fmt.Errorf("there is no part %d", t.Part)
	case t.State != TaskSent && t.State != TaskWaiting && t.State != TaskDone:
		return fmt.Errorf("there is no state %q", t.State)
	case t.Result != nil && t.Err != nil:
		return errors.New("it has a result and an error")
	case (t.State == TaskDone) != (t.Result != nil || t.Err != nil):
		return errors.New("an outcome and its end go together")
	case (t.Result != nil) != (t.ResultHash != ""):
		return errors.New("a result and its hash go together")
	}
	return nil
}

// maxID is the longest id of a request there can be, in bytes.
const maxID = 128

// validID reports whether the id can be part of a key. Whoever asks for another
// one asks for a request there is not.
func validID(id string) bool {
	if id == "" || len(id) > maxID {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

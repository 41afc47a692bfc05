package requests

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
)

// full returns a record with a value in every member.
func full(t *testing.T) *Record {
	t.Helper()
	r := newRecord(testID)
	r.Caller.AllAgents = true
	r.Request.SessionID, r.Request.AgentID = "s1", new("quality")
	r.History = []contract.Turn{{Role: "user", Content: "olá"}}
	r.Pinned = &PinnedClassification{Classification: decision().Classification, Reason: "chosen"}
	r.OnlyAgent = "quality"
	planned := parts()
	planned[1].Agents, planned[1].Unavailable = nil, &contract.Candidate{AgentID: "costs", Gates: []contract.Gate{{Gate: "state", Reason: "down"}}}
	must(t, r.Plan(decision(), planned, []contract.Omitted{{Subtask: 2, Title: "Sing", Reason: "no_match"}}))
	must(t, r.Start(owner, 0))
	must(t, r.Send(Task{ID: "t1", AgentID: "quality", SentAt: now}))
	must(t, r.Finish("t1", failed(contract.TaskAgentUnavailable)))
	must(t, r.Send(Task{ID: "t2", AgentID: "second", SentAt: now}))
	must(t, r.TakeOver("router-2", now))
	must(t, r.Resend("t2", 2))
	must(t, r.Wait("t2"))
	res := result("pronto")
	res.Data["rows"] = json.RawMessage(`[1,null,{"a":true}]`)
	res.Metrics, res.Logs, res.Explanations = map[string]float64{"tokens": 8}, []string{"l"}, []string{"e"}
	_, err := r.Deliver("t2", "second", res)
	must(t, err)
	resp := answer(contract.StatusPartial)
	resp.Decision, resp.Tasks, resp.Omitted = r.Decision, r.Reports(), r.Omitted
	resp.Data = contract.ResponseData{Mode: contract.DataDispatch, Answer: "pronto"}
	must(t, r.End(contract.StatusPartial, resp, now))
	return r
}

func TestEncode_KeepsEveryMember(t *testing.T) {
	for name, r := range map[string]*Record{"new": newRecord(testID), "full": full(t)} {
		t.Run(name, func(t *testing.T) {
			data, err := encodeRecord(r.ID, r)
			must(t, err)
			got, err := decodeRecord(testID, data)
			must(t, err)
			if diff := cmp.Diff(r, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("decoded record (-want +got):\n%s", diff)
			}
			again, err := encodeRecord(got.ID, got)
			must(t, err)
			if !bytes.Equal(data, again) {
				t.Errorf("got another encoding the second time:\n%s\n%s", data, again)
			}
			old := append(bytes.TrimSuffix(data, []byte("}")), `,"write":"ABCDEFGHIJKLMNOPQRSTUVWXYZ"}`...)
			if _, err := decodeRecord(testID, old); err != nil {
				t.Errorf("record of an earlier version: %v", err)
			}
		})
	}
}

func TestDecode_RestoresIDsOfTheRequest(t *testing.T) {
	data, err := encodeRecord(testID, newRecord(testID))
	must(t, err)
	got, err := decodeRecord(testID, data)
	must(t, err)
	if got.Request.RequestID != testID || got.Request.TraceID != got.TraceID || got.TraceID == "" {
		t.Errorf("got request %q and trace %q, want %q and %q", got.Request.RequestID, got.Request.TraceID, testID, got.TraceID)
	}
}

// No sequence of transitions results in these records.
func TestDecode_RejectsInconsistentRecords(t *testing.T) {
	tests := []struct {
		name, old, new string // old, a part of the full record, is replaced by new
		want           string
	}{
		{"other version", `"version":1`, `"version":2`, "version 2"},
		{"no version", `"version":1,`, ``, "version 0"},
		{"no id", `"id":"` + testID + `"`, `"id":""`, "record of request"},
		{"id with a dot", `"id":"` + testID + `"`, `"id":"a.b"`, "record of request"},
		{"unknown state", `"state":"partial"`, `"state":""`, "unknown state"},
		{"invalid state", `"state":"partial"`, `"state":"done"`, "unknown state"},
		{"response before the end", `"state":"partial"`, `"state":"running"`, "response"},
		{"negative epoch", `"epoch":1`, `"epoch":-1`, "epoch"},
		{"task without an id", `"id":"t1"`, `"id":""`, "no id"},
		{"duplicate task", `"id":"t1"`, `"id":"t2"`, "twice"},
		{"task of an unknown part", `"agent_id":"second","part":0`, `"agent_id":"second","part":7`, "unknown part 7"},
		{"task of a negative part", `"agent_id":"second","part":0`, `"agent_id":"second","part":-1`, "unknown part -1"},
		{"task without a state", `"state":"done"`, `"state":"lost"`, "unknown state"},
		{"outcome before the end", `"state":"done"`, `"state":"sent"`, "outcome"},
		{"result without a hash", `"result_hash":`, `"result_hash":"","x":`, "unknown"},
		{"unknown member", `"epoch":1`, `"epoch":1,"mood":"good"`, "unknown"},
		{"duplicate member", `"epoch":1`, `"epoch":1,"epoch":1`, "more than once"},
		{"truncated", `"epoch":1`, `"epoch`, ""},
	}
	data, err := encodeRecord(testID, full(t))
	must(t, err)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(string(data), tt.old, tt.new, 1)
			if text == string(data) {
				t.Fatalf("got no %s in the record", tt.old)
			}
			_, err := decodeRecord(testID, []byte(text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestEncode_RejectsInconsistentRecords(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Record)
	}{
		{"end without a response", func(r *Record) { r.Response = nil }},
		{"parts without a decision", func(r *Record) { r.Decision = nil }},
		{"result and error", func(r *Record) { r.Tasks[1].Err = &contract.TaskError{} }},
		{"result without a hash", func(r *Record) { r.Tasks[1].ResultHash = "" }},
		{"hash without a result", func(r *Record) { r.Tasks[0].ResultHash = "x" }},
		{"done without an outcome", func(r *Record) { r.Tasks[0].Err = nil }},
		{"task without an agent", func(r *Record) { r.Tasks[0].AgentID = "" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := full(t)
			tt.change(r)
			if _, err := encodeRecord(r.ID, r); err == nil {
				t.Error("got no error, want one")
			}
		})
	}
}

func TestCheckID_RejectsInvalidIDs(t *testing.T) {
	tests := []struct {
		name, id string
		want     bool
	}{
		{"a UUID", testID, true},
		{"letters and digits", "aZ09_-", true},
		{"maximum length", strings.Repeat("a", store.MaxIDLength), true},
		{"longer", strings.Repeat("a", store.MaxIDLength+1), false},
		{"nothing", "", false},
		{"two tokens", "a.b", false},
		{"all keys", ">", false},
		{"wildcard", "*", false},
		{"a path", "../x", false},
		{"white space", "a b", false},
		{"accent", "é", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := checkID(tt.id) == nil; got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

// FuzzDecode decodes arbitrary bytes of a damaged store. An accepted record can be read, changed
// and encoded again.
func FuzzDecode(f *testing.F) {
	t := new(testing.T)
	for _, r := range []*Record{newRecord(testID), inState(t, StatePlanned), inState(t, StateRunning), full(t)} {
		data, err := encodeRecord(r.ID, r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"version":1,"id":"a","state":"running"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeRecord(testID, data)
		if err != nil {
			return
		}
		r.Snapshot()
		again, err := encodeRecord(r.ID, r)
		if err != nil {
			t.Fatalf("encode a decoded record: %v\n%s", err, data)
		}
		back, err := decodeRecord(r.ID, again)
		if err != nil {
			t.Fatalf("decode an encoded record: %v\n%s", err, again)
		}
		if diff := cmp.Diff(r, back, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("decoded again (-want +got):\n%s", diff)
		}
		for _, e := range events {
			if err := e.do(r); err == nil && r.check(r.ID) != nil {
				t.Fatalf("after %s: got an inconsistent record: %v", e.event, r.check(r.ID))
			}
		}
	})
}

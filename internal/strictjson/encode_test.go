package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
)

func TestMarshal_IsDeterministic(t *testing.T) {
	tests := []struct {
		name string
		v    any
		want string
	}{
		{"nil slices and maps", contract.Task{}, `{"task_id":"","request_id":"","trace_id":"","intent":"","domains":[],"subtask_title":"","confidence":0,"inputs":{},"deadline":"0001-01-01T00:00:00Z","attempt":0}`},
		{"sorted maps", map[string]int{"b": 2, "a": 1, "é": 3}, `{"a":1,"b":2,"é":3}`},
		{"HTML is not escaped", "<a href='x'>&</a>", `"<a href='x'>&</a>"`},
		{"raw values are minified", json.RawMessage("{ \"a\" : [ 1, 2 ] }"), `{"a":[1,2]}`},
		{"nil raw value", map[string]json.RawMessage{"a": nil}, `{"a":null}`},
		{"nil pointer", contract.TaskReport{}, `{"task_id":"","agent_id":"","subtask_title":"","status":"","attempts":0,"latency_ms":0,"error":null}`},
		{"bad UTF-8 becomes U+FFFD", "a\xffb", `"a` + "\ufffd" + `b"`},
		{"embedded pointer that is nil", contract.ResponseData{Mode: "dispatch"}, `{"mode":"dispatch"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Marshal(tt.v)
			if err != nil {
				t.Fatalf("Marshal: got error %v, want none", err)
			}
			if string(got) != tt.want {
				t.Errorf("Marshal: got %s, want %s", got, tt.want)
			}
			var b bytes.Buffer
			if err := MarshalWrite(&b, tt.v); err != nil || b.String() != tt.want {
				t.Errorf("MarshalWrite: got %s and error %v, want %s", b.String(), err, tt.want)
			}
		})
	}
}

func TestAppendString_EncodesAsMarshal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "s")) + rapid.String().Draw(t, "text")
		want, err := Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendString([]byte("x"), s); string(got) != "x"+string(want) {
			t.Fatalf("AppendString(%q) = %s, want x%s", s, got, want)
		}
	})
}

func TestMarshal_RejectsValuesWithoutJSON(t *testing.T) {
	for name, v := range map[string]any{
		"raw value that is none":        json.RawMessage(`{"a":`),
		"raw value that names it twice": json.RawMessage(`{"a":1,"a":2}`),
		"function":                      func() {},
	} {
		if got, err := Marshal(v); err == nil {
			t.Errorf("%s: got %s, want an error", name, got)
		}
	}
}

func TestMarshalWrite_ReturnsWriterError(t *testing.T) {
	broken := errors.New("pipe is broken")
	if err := MarshalWrite(failingWriter{broken}, fullResponse()); !errors.Is(err, broken) {
		t.Errorf("got error %v, want %v", err, broken)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// Encoded values can be decoded, and encode to the same text again.
func TestMarshal_RoundTrip(t *testing.T) {
	text := rapid.StringN(0, 20, -1)
	raw := rapid.Custom(func(t *rapid.T) json.RawMessage {
		b, err := Marshal(rapid.OneOf(
			text.AsAny(), rapid.Int().AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil),
			rapid.MapOf(text, rapid.Float64()).AsAny(), rapid.SliceOf(text).AsAny(),
		).Draw(t, "value"))
		if err != nil {
			t.Fatalf("marshal a free value: %v", err)
		}
		return b
	})
	turn := rapid.Custom(func(t *rapid.T) contract.Turn {
		return contract.Turn{Role: text.Draw(t, "role"), Content: text.Draw(t, "content")}
	})
	rapid.Check(t, func(t *rapid.T) {
		want := contract.Request{
			Content: contract.Content{
				Prompt: text.Draw(t, "prompt"),
				Inputs: rapid.MapOfN(text, raw, 1, 5).Draw(t, "inputs"),
			},
			History:   rapid.SliceOfN(turn, 1, 4).Draw(t, "history"),
			Metadata:  contract.Metadata{Locale: text.Draw(t, "locale")},
			SessionID: text.Draw(t, "session"),
			AgentID:   rapid.Ptr(rapid.StringN(1, 9, -1), true).Draw(t, "agent"),
			Options: contract.Options{
				DryRun:    rapid.Bool().Draw(t, "dry"),
				TimeoutMS: rapid.Int().Draw(t, "timeout"),
			},
		}
		body, err := Marshal(want)
		if err != nil {
			t.Fatalf("Marshal: %v", err)
		}
		var got contract.Request
		if err := Unmarshal(body, &got); err != nil {
			t.Fatalf("Unmarshal(%s): %v", body, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("after a round trip (-want +got):\n%s", diff)
		}
		again, err := Marshal(got)
		if err != nil || !bytes.Equal(body, again) {
			t.Fatalf("marshalled again: got %s (%v), want %s", again, err, body)
		}
	})
}

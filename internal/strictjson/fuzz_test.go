package strictjson

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

// FuzzUnmarshal checks that no input panics, that every error is an *Error, and that accepted input
// is valid JSON that is unchanged after a round trip.
func FuzzUnmarshal(f *testing.F) {
	for _, seed := range []string{
		benchBody, benchForeign,
		`{"content":{"prompt":"x","inputs":{"a":[null,{"b":1e400}]}},"agent_id":null}`,
		`{"content":{"prompt":"x","prompt":"y"}}`,
		`{"Content":{"prompt":"x"}}`, `{"options":{"timeout_ms":1.5}}`,
		"\ufeff{}", "{\x00}\x00", `[[[[`, `null`, `{}x`, "\"\\ud800\"", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var request contract.Request
		if err := Unmarshal(data, &request); checked(t, err) {
			if !json.Valid(data) {
				t.Fatalf("got invalid JSON accepted: %q", data)
			}
			body, err := Marshal(request)
			if err != nil {
				t.Fatalf("encode an accepted value: %v", err)
			}
			var again contract.Request
			if err := Unmarshal(body, &again); err != nil {
				t.Fatalf("decode an encoded value: Unmarshal(%s): %v", body, err)
			}
			if second, err := Marshal(again); err != nil || string(second) != string(body) {
				t.Fatalf("after a round trip: got %s (%v), want %s", second, err, body)
			}
			Validate(&request)
		}
		var free any
		if checked(t, Unmarshal(data, &free)) {
			var foreign any
			if err := UnmarshalAllowUnknown(data, &foreign); err != nil || !reflect.DeepEqual(free, foreign) {
				t.Fatalf("foreign: got %v (%v), want %v as decoded strictly", foreign, err, free)
			}
		}
		checked(t, UnmarshalAllowUnknown(data, new(claims)))
	})
}

// checked reports whether err is nil, and fails the test if it is not an *Error.
func checked(t *testing.T, err error) bool {
	t.Helper()
	if _, ok := errors.AsType[*Error](err); err != nil && !ok {
		t.Fatalf("got error %T %v, want *Error", err, err)
	}
	return err == nil
}

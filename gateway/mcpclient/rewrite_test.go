package mcpclient

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An event in which the connection ends is no message, unless its data are JSON: a server that
// was killed in a result has not answered.
func TestRewritingBody_LeavesIncompleteEvents(t *testing.T) {
	const partial = "data: {\"id\":2,\"result\":{\"a\":"
	for _, tt := range []struct{ name, body, want string }{
		{"complete", "id: 1\ndata: {\"a\":NaN}\n\n", "id: 1\ndata: null\n\n"},
		{"data without an empty line", "data: {\"a\":1}\n", "data: null\n\n"},
		{"ends in the data", "data: {\"a\":1}\n\n" + partial, "data: null\n\n" + partial},
		{"ends after an incomplete line", partial + "\n", partial + "\n"},
	} {
		body := newRewritingBody(io.NopCloser(strings.NewReader(tt.body)), true, func([]byte) []byte { return []byte("null") })
		got, err := io.ReadAll(body)
		if diff := cmp.Diff(tt.want, string(got)); err != nil || diff != "" {
			t.Errorf("%s: got error %v, body (-want +got):\n%s", tt.name, err, diff)
		}
	}
}

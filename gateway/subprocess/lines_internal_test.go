package subprocess

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A line that is no message is rewritten only if it is whole: a server that was killed in a
// result has not answered.
func TestMessageReader_RewritesWholeLinesOnly(t *testing.T) {
	rewrite := func(line []byte) []byte { return acceptJSON(bytes.ReplaceAll(line, []byte("NaN"), []byte("null"))) }
	for output, want := range map[string]string{
		"{\"a\":NaN}\n{\"b\":NaN}": "{\"a\":null}\n",
		"log\n{\"a\":1}":           "{\"a\":1}\n", // the last message needs no line break
		"{\"a\":1}\n{\"b\":":       "{\"a\":1}\n",
	} {
		got, err := io.ReadAll(newMessageReader(io.NopCloser(strings.NewReader(output)), rewrite))
		if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
			t.Errorf("%q: got error %v, messages (-want +got):\n%s", output, err, diff)
		}
	}
}

package mcpclient

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
)

// observe reads a stream and returns the progress of the call "1" and the number of tool list
// changes.
func observe(t *testing.T, stream io.Reader, want string) (progress []float64, changes uint64) {
	t.Helper()
	s := &Session{changed: make(chan struct{}, 1)}
	_, stop := s.progress.add(func(p contract.ActionProgress) { progress = append(progress, p.Progress) })
	defer stop()
	got, err := io.ReadAll(&observedStream{ReadCloser: io.NopCloser(stream), session: s})
	if err != nil || string(got) != want {
		t.Fatalf("got %d bytes and %v, want the stream unchanged", len(got), err)
	}
	return progress, s.Changes()
}

const progressOf = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"1","progress":`

func TestObservedStream_ForwardsNotifications(t *testing.T) {
	large := "data: " + strings.Repeat("x", maxNotification) + "\n"
	stream := "event: message\nid: 7\ndata: " + progressOf + "1}}\n\n" +
		": a comment\r\ndata:" + progressOf + "\r\ndata: 2}}\r\n\r\n" + // on two lines
		"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n" +
		large + "data: " + progressOf + "3}}\n\n" + // a part of the event
		large + "\r\n" +
		"data: " + progressOf + "4}}\n\n" +
		"data: not JSON, notifications\n\n" +
		"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n" +
		"data: " + progressOf + "5}}" // incomplete
	for name, r := range map[string]io.Reader{"at once": strings.NewReader(stream), "in bytes": iotest.OneByteReader(strings.NewReader(stream))} {
		progress, changes := observe(t, r, stream)
		if diff := cmp.Diff([]float64{1, 2, 4}, progress); diff != "" || changes != 1 {
			t.Errorf("%s: got %d changes, want 1, and progress (-want +got):\n%s", name, changes, diff)
		}
	}
}

// The notifications do not depend on the sizes of the reads.
func FuzzObservedStream(f *testing.F) {
	f.Add("data: " + progressOf + "1}}\n\ndata:" + progressOf + "\ndata: 2}}\r\n\r\n")
	f.Add("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\r\n")
	f.Add("\n\n\r\ndata\ndata:\n\n:\n")
	f.Fuzz(func(t *testing.T, stream string) {
		progress, changes := observe(t, strings.NewReader(stream), stream)
		again, changesAgain := observe(t, iotest.OneByteReader(strings.NewReader(stream)), stream)
		if diff := cmp.Diff(progress, again); diff != "" || changes != changesAgain {
			t.Errorf("got %d and %d changes, and progress (-at once +in bytes):\n%s", changes, changesAgain, diff)
		}
	})
}

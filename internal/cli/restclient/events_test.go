package restclient

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
)

func TestClient_StreamRun(t *testing.T) {
	const begin = "event: run\ndata: {\"event\":\"goal_accepted\"}\n\n"
	for _, tc := range []struct {
		name    string
		status  int
		mime    string
		body    string
		want    contract.OrchestrationStatus
		handled []string
		errHas  string
	}{
		{
			name: "final event", status: 200, body: ": comment\n\n" + begin + "event: final\ndata: {\"status\":\"DONE\"}\n\n",
			want: contract.OrchestrationDone, handled: []string{"run-1 goal_accepted"},
		},
		{name: "early end", status: 200, body: begin, handled: []string{"run-1 goal_accepted"}, errHas: "its state is at "},
		{name: "problem in the stream", status: 200, body: "event: problem\ndata: {\"code\":\"overloaded\",\"detail\":\"later\"}\n\n", errHas: "later"},
		{name: "problem", status: 403, mime: "application/problem+json", body: `{"code":"forbidden","detail":"not you"}`, errHas: "not you"},
		{name: "another server", status: 404, mime: "text/html", body: "<html>", errHas: "not a caprouter answer"},
		{name: "response without a stream", status: 202, mime: "application/json", body: "{}", errHas: "without a stream of events"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
				if got, want := r.Header.Get("Authorization"), "Bearer secret"; got != want {
					t.Errorf("Authorization: got %q, want %q", got, want)
				}
				w.Header().Set("Content-Type", tc.mime)
				w.Header().Set("Location", "/api/v1/orchestrations/run-1")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			})
			c.token = "secret"
			var handled []string
			run, err := c.StreamRun(t.Context(), &contract.Goal{Goal: "a goal"}, func(id string, ev *contract.RunEvent) {
				handled = append(handled, id+" "+ev.Event)
			})
			if diff := cmp.Diff(tc.handled, handled); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if tc.errHas != "" {
				if err == nil || !strings.Contains(err.Error(), tc.errHas) {
					t.Errorf("got error %v, want %q in it", err, tc.errHas)
				}
				return
			}
			if err != nil || run.Status != tc.want {
				t.Errorf("got %+v, %v, want status %s", run, err, tc.want)
			}
		})
	}
}

package rest

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
)

func TestHandleAudit_ParsesQuery(t *testing.T) {
	var asked *contract.AuditQuery
	backend := &fakeBackend{later: fakeLater{audit: func(q contract.AuditQuery) (*contract.AuditPage, error) {
		asked = &q
		return &contract.AuditPage{}, nil
	}}}
	srv := startServer(t, httpserver.Config{}, backend)
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	const since, until = "since=2026-01-02T15:04:05Z", "until=2026-01-02T15:04:05Z"
	cases := []struct {
		query    string
		want     contract.AuditQuery
		pointers []string // of the errors
	}{
		{query: ""},
		{query: "kind=admin", want: contract.AuditQuery{Kinds: []contract.AuditKind{contract.AuditAdmin}}},
		{query: "kind=tool_call&limit=5&kind=admin", want: contract.AuditQuery{Kinds: []contract.AuditKind{contract.AuditToolCall, contract.AuditAdmin}, Limit: 5}},
		{query: since + "&" + until, want: contract.AuditQuery{Since: at, Until: at}},
		{query: "actor=an%C3%A1&agent=quality_agent&tool=files.read&request_id=" + testRequest, want: contract.AuditQuery{
			Actor: "aná", Agent: "quality_agent", Tool: "files.read", RequestID: testRequest,
		}},
		{query: "limit=1000&cursor=abc", want: contract.AuditQuery{Limit: 1000, Cursor: "abc"}},
		{query: "kind=login", pointers: []string{"/kind"}},
		{query: "kind=", pointers: []string{"/kind"}},
		{query: "kind=admin,run", pointers: []string{"/kind"}},
		{query: "kind=admin&kind=admin", pointers: []string{"/kind"}},
		{query: "since=2026-01-02T15:04:06Z&" + until, pointers: []string{"/until"}},
		{query: "since=1h&until=now", pointers: []string{"/since", "/until"}},
		{query: "actor=&agent=X&tool=%00&request_id=%2F", pointers: []string{"/actor", "/agent", "/request_id", "/tool"}},
		{query: "actor=%ff", pointers: []string{"/actor"}},
		{query: "actor=" + strings.Repeat("a", 257), pointers: []string{"/actor"}},
		{query: "actor=a&actor=b", pointers: []string{"/actor"}},
		{query: "limit=0&cursor=%0a", pointers: []string{"/cursor", "/limit"}},
		{query: "limit=1001", pointers: []string{"/limit"}},
		{query: "request=" + testRequest, pointers: []string{"/request"}},
	}
	for _, c := range cases {
		t.Run(c.query, func(t *testing.T) {
			asked = nil
			got := srv.get(t, "/api/v1/audit?"+c.query)
			if c.pointers != nil {
				if diff := cmp.Diff(c.pointers, pointers(problemOf(t, got))); diff != "" || got.StatusCode != http.StatusUnprocessableEntity || asked != nil {
					t.Errorf("got %d, want 422; pointers (-want +got):\n%s", got.StatusCode, diff)
				}
				return
			}
			if asked == nil {
				t.Fatalf("got %d %s, want 200", got.StatusCode, got.body)
			}
			if diff := cmp.Diff(c.want, *asked); diff != "" {
				t.Errorf("the query differs (-want +got):\n%s", diff)
			}
		})
	}
}

// The kinds of the query are those of package contract.
func TestAuditKinds_AreComplete(t *testing.T) {
	if diff := cmp.Diff(sorted(contractConstants(t)["AuditKind"]), sorted(auditKindNames())); diff != "" {
		t.Errorf("kinds differ (-constants +AuditKinds):\n%s", diff)
	}
}

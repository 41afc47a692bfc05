package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

// listAudit returns all entries that the caller sees, page by page.
func (s *testServer) listAudit(token string, query url.Values) (list []contract.AuditEntry) {
	s.t.Helper()
	parameters := url.Values{"limit": {"4"}}
	maps.Copy(parameters, query)
	for range 100 {
		got := s.do(call{method: http.MethodGet, path: "/api/v1/audit?" + parameters.Encode(), token: token})
		var page contract.AuditPage
		if err := json.Unmarshal(got.body, &page); err != nil || got.status != http.StatusOK || len(page.Entries) > 4 {
			s.t.Fatalf("audit?%s: got %d %s, %v", parameters.Encode(), got.status, got.body, err)
		}
		if list = append(list, page.Entries...); page.NextCursor == "" {
			return list
		}
		parameters.Set("cursor", page.NextCursor)
	}
	s.t.Fatal("got no end of the pages")
	return nil
}

// auditSummaries returns one line for each entry: the kind, the actor and what was done. The end of
// an orchestration is recorded when its task has ended already, and so is the outcome of its
// request, in any order: here the outcome is the later one.
func auditSummaries(list []contract.AuditEntry) (lines []string) {
	for i := range list {
		e := &list[i]
		line := fmt.Sprintf("%s %s/%s %s%s %s%s %s", e.Kind, e.Tenant, e.Actor, e.Event, e.Tool, strings.Join(e.Agents, ","), e.Verdict, e.Status)
		if e.Erased {
			line += " erased"
		}
		lines = append(lines, strings.Join(strings.Fields(line), " "))
		if last := len(lines) - 1; e.Kind == contract.AuditOutcome && last > 0 && list[i-1].Kind == contract.AuditRun {
			lines[last-1], lines[last] = lines[last], lines[last-1]
		}
	}
	return lines
}

func (s *testServer) checkAudit(name, token string, query url.Values, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, auditSummaries(s.listAudit(token, query))); diff != "" {
		s.t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// The audit log shows each caller what concerns it, also after an erasure and a restart, and never
// a content.
func TestAudit_ListsFactsForTheCaller(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	const secret = "canary-of-the-audit-list"
	var before []string
	t.Run("router", func(t *testing.T) {
		model := startModel(t, config.ProviderGemini, operatorsKey)
		s := newDoerServer(t, model, func(c *config.Config) { c.DataDir = dir })
		ana, root := s.of("ana", doerScopes), s.token("root", "route:read admin", map[string]any{"tenant": "ops"})
		model.setReplies(fakellm.Text(`{"steps":[` + stepOf("a", "add", `{"n":1,"text":"`+secret+`"}`, "") + `]}`))
		resp := s.routeTask(t, ana, "count the numbers "+secret, "sync", 0)
		testkit.Eventually(t, "the end of the orchestration is recorded", func() bool {
			return strings.Contains(s.log.String(), `"msg":"orchestration"`)
		})
		if got := s.do(call{method: "POST", path: "/api/v1/requests/" + resp.RequestID + "/feedback", token: ana, body: `{"verdict":"misroute","comment":"` + secret + `"}`}); got.status != http.StatusOK {
			t.Fatalf("feedback: got %d %s", got.status, got.body)
		}
		if got := s.do(call{method: "POST", path: "/api/v1/agents/doer/disable", token: root}); got.status != http.StatusNoContent {
			t.Fatalf("disable: got %d %s", got.status, got.body)
		}
		since := url.Values{"since": {time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)}}
		own := []string{
			"feedback acme/ana misroute",
			"outcome acme/ana doer completed",
			"run acme/ana committed doer completed",
			"tool_call acme/ana counter.add doer completed",
			"run acme/ana policy_allowcounter.add doer running",
			"decision acme/ana doer running",
		}
		s.checkAudit("the caller", ana, since, own...)
		s.checkAudit("another caller of the tenant", s.of("ben", "route:read agent:doer"), nil, own[1])
		s.checkAudit("one that may call the tool", s.of("ben", "route:read agent:doer mcp:invoke:counter.add"), nil, own[1], own[3])
		s.checkAudit("one that may approve", s.of("ben", "route:read orchestrate:approve"), nil, own[2], own[4])
		s.checkAudit("one without the agent", s.of("ben", "route:read"), nil)
		s.checkAudit("the same subject of another tenant", s.token("ana", doerScopes, map[string]any{"tenant": "rival"}), url.Values{"request_id": {resp.RequestID}})
		all := append([]string{"admin ops/root disable doer"}, own...)
		s.checkAudit("administrator", root, nil, append(all, "admin / start")...)
		s.checkAudit("a former administrator", s.token("root", "route:read", map[string]any{"tenant": "ops"}), nil, all[0])

		s.checkAudit("kinds", root, url.Values{"kind": {"tool_call", "admin"}}, all[0], own[3], "admin / start")
		s.checkAudit("actor", root, url.Values{"actor": {"ana"}}, own...)
		s.checkAudit("tool", root, url.Values{"tool": {"counter.add"}, "kind": {"tool_call"}}, own[3])
		s.checkAudit("agent", root, url.Values{"agent": {"doer"}, "kind": {"admin"}}, all[0])
		s.checkAudit("request", root, url.Values{"request_id": {resp.RequestID}}, own...)
		s.checkAudit("orchestration", root, url.Values{"request_id": {resp.Tasks[0].TaskID}}, own[2:5]...)
		s.checkAudit("until a year ago", root, url.Values{"until": {time.Now().AddDate(-1, 0, 0).UTC().Format(time.RFC3339)}})
		s.checkAudit("until now", root, url.Values{"until": {time.Now().Add(time.Minute).UTC().Format(time.RFC3339)}, "kind": {"feedback"}}, own[0])

		s.erase(t, "/api/v1/requests/"+resp.RequestID, ana)
		erased := []string{"admin acme/ana erase", own[0]}
		for _, line := range own[1:] {
			erased = append(erased, line+" erased")
		}
		s.checkAudit("erased", ana, nil, erased...)
		s.checkAudit("erased, of the request", ana, url.Values{"request_id": {resp.RequestID}, "kind": {"outcome", "admin"}}, erased[0], erased[2])
		list := s.listAudit(root, nil)
		if data, err := json.Marshal(list); err != nil || strings.Contains(string(data), secret) {
			t.Errorf("got a content in %s, error %v", data, err)
		}
		before = auditSummaries(list)

		for path, pointer := range map[string]string{
			"kind=login": "/kind", "since=2026-01-03T00:00:00Z&until=2026-01-02T00:00:00Z": "/until", "cursor=abc": "/cursor", "request=x": "/request", "limit=0": "/limit",
		} {
			got := s.do(call{method: "GET", path: "/api/v1/audit?" + path, token: ana})
			if got.status != http.StatusUnprocessableEntity || !strings.Contains(string(got.body), `"pointer":"`+pointer+`"`) {
				t.Errorf("%s: got %d %s, want 422 with %s", path, got.status, got.body, pointer)
			}
		}
		if got := s.do(call{method: "GET", path: "/api/v1/audit", token: s.of("ana", "route:submit orchestrate")}); got.status != http.StatusForbidden {
			t.Errorf("without route:read: got %d %s, want 403", got.status, got.body)
		}
	})
	t.Run("after a restart", func(t *testing.T) {
		model := startModel(t, config.ProviderGemini, operatorsKey)
		s := newDoerServer(t, model, func(c *config.Config) { c.DataDir = dir })
		got := auditSummaries(s.listAudit(s.token("root", "route:read admin", nil), nil))
		if len(before) == 0 || len(got) < len(before) || !slices.Equal(got[len(got)-len(before):], before) {
			t.Errorf("got %q, want the entries of before at the end: %q", got, before)
		}
	})
}

// Registrations of MCP servers are recorded with their caller.
func TestAudit_RecordsServers(t *testing.T) {
	t.Parallel()
	model := startModel(t, config.ProviderGemini, operatorsKey)
	s := newDoerServer(t, model, func(c *config.Config) { c.Dispatch.AllowPrivate = config.StringList{"127.0.0.1/32"} })
	root := s.token("root", "route:read admin", map[string]any{"tenant": "ops"})
	body := registration("extra", serveTool(t, "x"))
	for _, c := range []struct {
		call
		want int
	}{
		{call{method: "POST", path: registeredServers, token: root, body: body}, http.StatusCreated},
		{call{method: "POST", path: registeredServers, token: root, body: body}, http.StatusConflict},
		{call{method: "DELETE", path: registeredServers + "/extra", token: root}, http.StatusNoContent},
		{call{method: "DELETE", path: registeredServers + "/extra", token: root}, http.StatusNotFound},
	} {
		if got := s.do(c.call); got.status != c.want {
			t.Fatalf("%s %s: got %d %s, want %d", c.method, c.path, got.status, got.body, c.want)
		}
	}
	s.checkAudit("administrator", root, url.Values{"actor": {"root"}}, "admin ops/root remove_server", "admin ops/root register_server")
	if list := s.listAudit(root, url.Values{"actor": {"root"}}); list[0].Detail != "server extra" {
		t.Errorf("got the detail %q, want the server", list[0].Detail)
	}
}

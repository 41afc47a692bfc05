package app

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

// matrix is a router with two agents, each of which has its own caller.
type matrix struct {
	*testServer
	tokenIssuer
	later *laterAgent
}

// laterAgent accepts every task and sends no result; the test does.
type laterAgent struct {
	mu    sync.Mutex
	tasks map[string]contract.Callback // by task id
}

func (a *laterAgent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var task contract.Task
	if r.Method != http.MethodPost || strings.HasSuffix(r.URL.Path, "/cancel") || json.NewDecoder(r.Body).Decode(&task) != nil {
		return
	}
	a.mu.Lock()
	a.tasks[task.TaskID] = *task.Callback
	a.mu.Unlock()
	w.WriteHeader(http.StatusAccepted)
}

func (a *laterAgent) callback(id string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tasks[id].Token
}

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	m := &matrix{tokenIssuer: newTokenIssuer(), later: &laterAgent{tasks: map[string]contract.Callback{}}}
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":"success","data":{"answer":"done"}}`)
	}))
	t.Cleanup(agent.Close)
	later := httptest.NewServer(m.later)
	t.Cleanup(later.Close)
	m.testServer = startGuarded(t, m.tokenIssuer, "clients:\n"+
		entry("counter", "count_words", "prose", agent.URL, ", mcp_capabilities: ['prose:read']")+
		entry("sleeper", "sleep_long", "prose", later.URL)+
		"  puller: { match: { intent: [pull_weeds], domains: [gardens] }, endpoint: { protocol: pull } }\n"+
		entry("hidden_agent", "veiled_thing", "shadows", agent.URL)+"fallback: { policy: C }\n"+
		"grants: { guest: { intents: [count_words], domains: [prose] } }\n",
		func(c *config.Config) {
			c.Orchestrator.ApproveOwn = true
			c.Limits.Register.RPS, c.Limits.Check.RPS = "0", "0"
			c.MCP.File = writeFile(t, "mcp.json", restPlugin(t, "plugin", "echo"))
		})
	return m
}

const everyScope = "route:submit route:read agents:read tickets mcp:read mcp:invoke:plugin.echo orchestrate orchestrate:approve"

// documentedScope returns a scope of a token as named in the document.
func documentedScope(scope string) string {
	if strings.HasPrefix(scope, "mcp:invoke:") {
		return "mcp:invoke:{action}"
	}
	return scope
}

// tokenWithout returns a token of tenant acme with all scopes and two agents, except the given scope.
func (m *matrix) tokenWithout(without string, over map[string]any) string {
	scopes := slices.DeleteFunc(strings.Fields(everyScope), func(s string) bool {
		// The other scopes that permit reading, or erasing, an orchestration as well.
		other := s == "orchestrate:approve" || s == "route:submit"
		return documentedScope(s) == without || other && without == "orchestrate"
	})
	all := map[string]any{"tenant": "acme"}
	maps.Copy(all, over)
	return m.token("alice", strings.Join(scopes, " ")+" agent:counter agent:sleeper agent:puller", all)
}

// submit routes a prompt as alice and returns the response.
func (m *matrix) submit(prompt, mode string) *contract.Response {
	m.t.Helper()
	got := m.do(call{
		method: "POST", path: "/api/v1/route", token: m.tokenWithout("", nil),
		body: fmt.Sprintf(`{"content":{"prompt":%q},"options":{"mode":%q}}`, prompt, mode),
	})
	var resp contract.Response
	if err := json.Unmarshal(got.body, &resp); err != nil || got.status >= 300 {
		m.t.Fatalf("route %q: %d %s", prompt, got.status, got.body)
	}
	return &resp
}

// open submits a request that stays open, and returns it with its task.
func (m *matrix) open() (request, task string) {
	m.t.Helper()
	id := m.submit("please sleep long over this prose", "async").RequestID
	testkit.Eventually(m.t, "the agent has the task", func() bool {
		var resp contract.Response
		got := m.do(call{method: "GET", path: "/api/v1/requests/" + id, token: m.tokenWithout("", nil)})
		if json.Unmarshal(got.body, &resp) != nil || len(resp.Tasks) == 0 {
			return false
		}
		task = resp.Tasks[0].TaskID
		return m.later.callback(task) != ""
	})
	return id, task
}

func (m *matrix) ticket() string {
	m.t.Helper()
	resp := m.submit("bake me a cake with cherries", "sync")
	if resp.Data.Proposal == nil {
		m.t.Fatalf("got no ticket: %+v", resp.Data)
	}
	return resp.Data.Proposal.TicketID
}

// row is one operation with its required scope.
type row struct {
	scope   string // as named in the document
	body    string
	status  int // the status with the scope
	ask     func(m *matrix) (path, unknown string)
	foreign int      // the status for another tenant; 0 = no tenant
	leaks   []string // words that no response may contain
}

const unknownID = "01980c1a-7c00-7a3e-9d41-5f2b6c7d8e90"

func fixed(path string) func(*matrix) (string, string) {
	return func(*matrix) (string, string) { return path, "" }
}

// ofRequest returns the path for a request that has ended, or is open.
func ofRequest(open bool, suffix string) func(*matrix) (string, string) {
	return func(m *matrix) (string, string) {
		var id string
		if open {
			id, _ = m.open()
		} else {
			id = m.submit("please count words of this prose", "sync").RequestID
		}
		return "/api/v1/requests/" + id + suffix, "/api/v1/requests/" + unknownID + suffix
	}
}

func ofTask(suffix string) func(*matrix) (string, string) {
	return func(m *matrix) (string, string) {
		_, task := m.open()
		return "/api/v1/tasks/" + task + suffix, "/api/v1/tasks/" + unknownID + suffix
	}
}

// ofPulledTask returns the path for a task that its agent has pulled.
func ofPulledTask(suffix string) func(*matrix) (string, string) {
	return func(m *matrix) (string, string) {
		m.submit("please pull weeds in the gardens", "async")
		got := m.do(call{method: "POST", path: "/api/v1/agents/puller/lease", token: m.puller(), body: `{"wait_s":20}`})
		var leased contract.LeasedTask
		if err := json.Unmarshal(got.body, &leased); err != nil {
			m.t.Fatalf("lease: %d %s", got.status, got.body)
		}
		m.later.mu.Lock()
		m.later.tasks[leased.Task.TaskID] = *leased.Task.Callback
		m.later.mu.Unlock()
		return "/api/v1/tasks/" + leased.Task.TaskID + suffix, "/api/v1/tasks/" + unknownID + suffix
	}
}

// puller returns the token of an agent that pulls its tasks.
func (m *matrix) puller() string { return m.token("puller", "tasks:work", nil) }

func ofTicket(suffix string) func(*matrix) (string, string) {
	return func(m *matrix) (string, string) {
		return "/api/v1/tickets/" + m.ticket() + suffix, "/api/v1/tickets/" + unknownID + suffix
	}
}

const guestRegistration = `{"match":{"intent":["count_words"],"domains":["prose"]},"endpoint":{"protocol":"http","url":"https://agents.example/"}}`

// guest returns the token of an agent that registers itself.
func (m *matrix) guest() string { return m.token("guest", "agents:register tasks:work", nil) }

// ofGuest returns the path for the registration of the guest, which exists.
func ofGuest(suffix string) func(*matrix) (string, string) {
	return func(m *matrix) (string, string) {
		got := m.do(call{method: "PUT", path: "/api/v1/agents/guest", token: m.guest(), body: guestRegistration})
		if got.status >= 300 {
			m.t.Fatalf("register: %d %s", got.status, got.body)
		}
		return "/api/v1/agents/guest" + suffix, ""
	}
}

// ofRun returns the path for an orchestration of alice, which has ended.
func ofRun(suffix string) func(*matrix) (string, string) {
	return func(m *matrix) (string, string) {
		got := m.do(call{method: "POST", path: "/api/v1/orchestrations", token: m.tokenWithout("", nil), body: `{"goal":"a goal without a plan"}`})
		var run contract.Orchestration
		if err := json.Unmarshal(got.body, &run); err != nil || got.status != 200 {
			m.t.Fatalf("orchestrate: %d %s", got.status, got.body)
		}
		return "/api/v1/orchestrations/" + run.OrchestrationID + suffix, "/api/v1/orchestrations/" + unknownID + suffix
	}
}

// ofRegistered returns the path for an MCP server that an operator has registered.
func ofRegistered(m *matrix) (path, unknown string) {
	got := m.do(call{
		method: "POST", path: "/api/v1/mcp/servers", token: m.token("root", "admin", nil), body: `{"name":"extra","url":"https://mcp.invalid/mcp"}`,
	})
	if got.status != 201 {
		m.t.Fatalf("register an MCP server: %d %s", got.status, got.body)
	}
	return "/api/v1/mcp/servers/extra", ""
}

// authorizationTable contains the required scope of each operation. An operation without a row fails the test.
func authorizationTable() map[string]row {
	const prompt = `{"content":{"prompt":"please count words of this prose"},"options":{"fallback":"B"}}`
	hidden := []string{"hidden_agent", "veiled_thing", "shadows"}
	return map[string]row{
		"POST /api/v1/route":                       {"route:submit", prompt, 200, fixed("/api/v1/route"), 0, hidden},
		"POST /api/v1/classify":                    {"route:submit", prompt, 200, fixed("/api/v1/classify"), 0, hidden},
		"GET /api/v1/requests/{id}":                {"route:read", "", 200, ofRequest(false, ""), 404, hidden},
		"DELETE /api/v1/requests/{id}":             {"route:submit", "", 204, ofRequest(false, ""), 404, hidden},
		"GET /api/v1/requests/{id}/events":         {"route:read", "", 200, ofRequest(false, "/events"), 404, hidden},
		"POST /api/v1/requests/{id}/cancel":        {"route:submit", "", 200, ofRequest(true, "/cancel"), 404, hidden},
		"POST /api/v1/requests/{id}/feedback":      {"route:submit", `{"verdict":"correct"}`, 200, ofRequest(false, "/feedback"), 404, hidden},
		"GET /api/v1/decisions":                    {"route:read", "", 200, fixed("/api/v1/decisions"), 200, hidden},
		"GET /api/v1/audit":                        {"route:read", "", 200, fixed("/api/v1/audit"), 200, hidden},
		"POST /api/v1/tasks/{id}/result":           {"tasks:work", `{"task_id":"TASK","status":"success"}`, 200, ofTask("/result"), 404, nil},
		"POST /api/v1/tasks/{id}/progress":         {"tasks:work", `{"message":"half"}`, 204, ofTask("/progress"), 404, nil},
		"POST /api/v1/tasks/{id}/heartbeat":        {"tasks:work", "", 200, ofPulledTask("/heartbeat"), 404, nil},
		"POST /api/v1/agents/{id}/lease":           {"tasks:work", "", 204, fixed("/api/v1/agents/puller/lease"), 0, hidden},
		"GET /api/v1/tickets":                      {"tickets", "", 200, fixed("/api/v1/tickets"), 200, hidden},
		"GET /api/v1/tickets/{id}":                 {"tickets", "", 200, ofTicket(""), 404, hidden},
		"POST /api/v1/tickets/{id}/close":          {"tickets", "", 200, ofTicket("/close"), 404, hidden},
		"GET /api/v1/agents":                       {"agents:read", "", 200, fixed("/api/v1/agents"), 200, hidden},
		"GET /api/v1/agents/{id}":                  {"agents:read", "", 200, fixed("/api/v1/agents/counter"), 0, hidden},
		"PUT /api/v1/agents/{id}":                  {"agents:register", guestRegistration, 200, ofGuest(""), 0, hidden},
		"DELETE /api/v1/agents/{id}":               {"agents:register", "", 204, ofGuest(""), 0, hidden},
		"POST /api/v1/agents/{id}/heartbeat":       {"agents:register", "", 200, ofGuest("/heartbeat"), 0, hidden},
		"POST /api/v1/agents/{id}/drain":           {"agents:register", "", 200, ofGuest("/drain"), 0, hidden},
		"POST /api/v1/agents/{id}/disable":         {"admin", "", 204, ofGuest("/disable"), 0, hidden},
		"POST /api/v1/agents/{id}/enable":          {"admin", "", 204, ofGuest("/enable"), 0, hidden},
		"GET /api/v1/registry":                     {"agents:read", "", 200, fixed("/api/v1/registry"), 200, hidden},
		"POST /api/v1/registry/validate":           {"agents:read", "clients: {}", 200, fixed("/api/v1/registry/validate"), 0, hidden},
		"POST /api/v1/registry/lint":               {"agents:read", "clients: {}", 200, fixed("/api/v1/registry/lint"), 0, hidden},
		"POST /api/v1/registry/diff":               {"route:read", "clients: {}", 200, fixed("/api/v1/registry/diff"), 200, hidden},
		"GET /api/v1/mcp/registry":                 {"mcp:read", "", 200, fixed("/api/v1/mcp/registry"), 0, hidden},
		"POST /api/v1/mcp/validate":                {"mcp:read", `{"mcpServers":{}}`, 200, fixed("/api/v1/mcp/validate"), 0, hidden},
		"POST /api/v1/mcp/test":                    {"mcp:read", `{"server":"plugin"}`, 200, fixed("/api/v1/mcp/test"), 0, hidden},
		"POST /api/v1/mcp/invoke":                  {"mcp:invoke:{action}", `{"action":"plugin.echo"}`, 200, fixed("/api/v1/mcp/invoke"), 0, hidden},
		"GET /api/v1/mcp/servers":                  {"mcp:read", "", 200, fixed("/api/v1/mcp/servers"), 0, hidden},
		"POST /api/v1/mcp/servers":                 {"admin", `{"name":"other","url":"https://mcp.invalid/mcp"}`, 201, fixed("/api/v1/mcp/servers"), 0, hidden},
		"GET /api/v1/mcp/servers/{name}":           {"mcp:read", "", 200, fixed("/api/v1/mcp/servers/plugin"), 0, hidden},
		"PUT /api/v1/mcp/servers/{name}":           {"admin", `{"name":"put","url":"https://mcp.invalid/mcp"}`, 201, fixed("/api/v1/mcp/servers/put"), 0, hidden},
		"DELETE /api/v1/mcp/servers/{name}":        {"admin", "", 204, ofRegistered, 0, hidden},
		"POST /api/v1/mcp/bind":                    {"mcp:read", `{"agent_id":"counter","capability":"prose:read"}`, 200, fixed("/api/v1/mcp/bind"), 0, hidden},
		"GET /api/v1/mcp/events":                   {"mcp:read", "", 200, fixed(mcpEvents), 0, hidden},
		"GET /api/v1/mcp/tools/pending":            {"admin", "", 200, fixed("/api/v1/mcp/tools/pending"), 0, hidden},
		"POST /api/v1/mcp/tools/{name}/approve":    {"admin", `{"hash":"9f86d081884c"}`, 409, fixed("/api/v1/mcp/tools/plugin.echo/approve"), 0, hidden}, // it is not quarantined
		"POST /api/v1/orchestrations":              {"orchestrate", `{"goal":"a goal without a plan"}`, 200, fixed("/api/v1/orchestrations"), 0, hidden},
		"GET /api/v1/orchestrations":               {"orchestrate", "", 200, fixed("/api/v1/orchestrations"), 200, hidden},
		"GET /api/v1/orchestrations/{id}":          {"orchestrate", "", 200, ofRun(""), 404, hidden},
		"DELETE /api/v1/orchestrations/{id}":       {"orchestrate", "", 204, ofRun(""), 404, hidden},
		"GET /api/v1/orchestrations/{id}/events":   {"orchestrate", "", 200, ofRun("/events"), 404, hidden},
		"POST /api/v1/orchestrations/{id}/approve": {"orchestrate:approve", `{"step":"a","decision":"deny"}`, 409, ofRun("/approve"), 404, hidden}, // it does not wait
		"POST /api/v1/orchestrations/{id}/cancel":  {"orchestrate", "", 409, ofRun("/cancel"), 404, hidden},
		"GET /healthz":                             {"public", "", 200, fixed("/healthz"), 200, hidden},
		"GET /readyz":                              {"public", "", 200, fixed("/readyz"), 200, hidden},
		"GET /metrics":                             {"public", "", 200, fixed("/metrics"), 200, hidden},
		"GET /.well-known/jwks.json":               {"public", "", 200, fixed("/.well-known/jwks.json"), 200, hidden},
		"GET /openapi.json":                        {"public", "", 200, fixed("/openapi.json"), 200, hidden},
	}
}

// operations returns the operations of the served document. The tests of internal/rest compare the
// document with the routes.
func (m *matrix) operations() map[string]string {
	m.t.Helper()
	var doc struct {
		Paths map[string]map[string]struct {
			Scope string `json:"x-scope"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(m.do(call{method: "GET", path: "/openapi.json"}).body, &doc); err != nil {
		m.t.Fatal(err)
	}
	found := map[string]string{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			found[strings.ToUpper(method)+" "+path] = op.Scope
		}
	}
	return found
}

// Every operation × every kind of token.
func TestServer_AuthorizationMatrix(t *testing.T) {
	m := newMatrix(t)
	rows := authorizationTable()
	operations := m.operations()
	for name := range rows {
		if _, there := operations[name]; !there {
			t.Errorf("%s: got a row without an operation", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		r, there := rows[name]
		if !there {
			t.Errorf("%s: got no row, add its scope", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			if r.scope != operations[name] {
				t.Errorf("got scope %q in the document, %q in the row", operations[name], r.scope)
			}
			m := &matrix{testServer: &testServer{Server: m.Server, t: t}, tokenIssuer: m.tokenIssuer, later: m.later}
			m.check(t, name, r)
		})
	}
}

func (m *matrix) check(t *testing.T, name string, r row) {
	method, _, _ := strings.Cut(name, " ")
	path, unknown := r.ask(m)
	ask := func(path, token string) apiResponse {
		body := r.body
		if id, ok := strings.CutPrefix(path, "/api/v1/tasks/"); ok {
			id, _, _ = strings.Cut(id, "/")
			body = strings.ReplaceAll(body, "TASK", id)
		}
		header := http.Header{}
		if strings.HasPrefix(path, "/api/v1/registry/") {
			header.Set("Content-Type", "text/yaml")
		}
		got := m.do(call{method: method, path: path, token: token, body: body, header: header})
		for _, word := range r.leaks {
			if strings.Contains(string(got.body)+encode(got.header), word) {
				t.Errorf("%s: got %s in the response: %s", path, word, got.body)
			}
		}
		return got
	}
	want := func(who string, got apiResponse, status int) {
		t.Helper()
		if got.status != status {
			t.Errorf("%s: got %d %s, want %d", who, got.status, got.body, status)
		}
	}
	comparableText := func(who string, got, other apiResponse) {
		t.Helper()
		if got.comparableText() != other.comparableText() {
			t.Errorf("%s: got different responses for an existing and an unknown resource:\n%s\n%s", who, got.comparableText(), other.comparableText())
		}
	}
	expired := m.tokenWithout("", map[string]any{"iat": 1_700_000_000, "exp": 1_700_000_600})
	switch scope := r.scope; {
	case path == "/api/v1/agents/puller/lease":
		want("no token", ask(path, ""), 401)
		want("the agent without the scope", ask(path, m.token("puller", everyScope+" agents:register", nil)), 403)
		want("another agent", ask(path, m.token("counter", "tasks:work", nil)), 403)
		want("an operator", ask(path, m.token("root", "admin tasks:work", nil)), 403)
		want("the agent", ask(path, m.puller()), r.status)
	case scope == "public":
		for _, token := range []string{"", "nonsense", expired, m.tokenWithout("", nil)} {
			want("anybody", ask(path, token), r.status)
		}
	case scope == "tasks:work":
		id := strings.Split(path, "/")[4]
		_, other := m.open()
		want("no token", ask(path, ""), 401)
		want("a caller", ask(path, m.token("sleeper", everyScope+" tasks:work admin agent:*", nil)), 401)
		want("the token of another task", ask(path, m.later.callback(other)), 404)
		comparableText("the token of another task", ask(path, m.later.callback(other)), ask(unknown, m.later.callback(other)))
		want("the token of the task", ask(path, m.later.callback(id)), r.status)
	case scope == "agents:register":
		want("no token", ask(path, ""), 401)
		want("a caller", ask(path, m.token("guest", everyScope+" agent:*", nil)), 403)
		want("another agent", ask(path, m.token("counter", "agents:register", nil)), 403)
		want("the agent", ask(path, m.guest()), r.status)
		r.ask(m) // the guest may have deregistered
		want("an operator", ask(path, m.token("root", "admin", nil)), r.status)
	case scope == "admin":
		want("no token", ask(path, ""), 401)
		want("the agent", ask(path, m.guest()), 403)
		want("an operator", ask(path, m.token("root", "admin", nil)), r.status)
	default:
		want("no token", ask(path, ""), 401)
		want("an expired token", ask(path, expired), 401)
		want("token for another audience", ask(path, m.tokenWithout("", map[string]any{"aud": "another"})), 401)
		want("every scope but this", ask(path, m.tokenWithout(r.scope, nil)), 403)
		if admin := m.token("root", "admin", nil); method == http.MethodGet { // it reads everything, also what others may not see
			want("admin alone", m.do(call{method: method, path: path, token: admin}), r.status)
		} else if path != "/api/v1/registry/diff" {
			want("admin alone", ask(path, admin), 403)
		}
		if unknown != "" {
			want("an id that never was", ask(unknown, m.tokenWithout("", nil)), 404)
		}
		m.checkForeign(t, r, path, unknown, ask, want, comparableText)
		var got apiResponse
		testkit.Eventually(t, "its end is recorded", func() bool { // before, it cannot be erased
			got = ask(path, m.tokenWithout("", nil))
			return method != http.MethodDelete || got.status != http.StatusConflict
		})
		want("who may", got, r.status)
	}
}

// checkForeign sends the operation as another tenant, and as a caller of the same tenant who may
// use other agents only.
func (m *matrix) checkForeign(t *testing.T, r row, path, unknown string, ask func(path, token string) apiResponse,
	want func(string, apiResponse, int), comparableText func(string, apiResponse, apiResponse),
) {
	rival := m.tokenWithout("", map[string]any{"tenant": "rival"})
	bob := m.token("bob", everyScope+" agent:other_agent", map[string]any{"tenant": "acme"})
	if r.foreign == 0 {
		return
	}
	got := ask(path, rival)
	want("another tenant", got, r.foreign)
	if strings.Contains(string(got.body), "acme") {
		t.Errorf("got data of this tenant for another one: %s", got.body)
	}
	if unknown == "" {
		if body := string(ask(path, bob).body); strings.Contains(body, "counter") || strings.Contains(body, "count_words") {
			t.Errorf("got the agent counter for a caller without it: %s", body)
		}
		return
	}
	comparableText("another tenant", got, ask(unknown, rival))
	// Tickets belong to the whole tenant, and an approver sees the runs of the tenant.
	if !strings.Contains(path, "/tickets/") && !strings.Contains(path, "/orchestrations/") {
		want("who may not use its agent", ask(path, bob), r.foreign)
		comparableText("who may not use its agent", ask(path, bob), ask(unknown, bob))
	}
}

package main

import (
	"net/http"
	"regexp"
	"slices"
)

// scenario is a server with one kind of request. Each has a process of its own.
type scenario struct {
	name   string // in -only, the names of files and of Go benchmarks
	title  string // in the tables
	floor  string // name of the scenario beside which it is measured; "" for a floor
	server string // kind of server: see startSubject
	router routerConfig
	request

	sequential bool // also measured over one connection
}

// request is the request that the clients send, with the answer that is correct.
type request struct {
	path, body string
	accept     string // media type; "" sends no header
	background bool   // the answer precedes the work, which is part of the measurement
	status     int
	want       string // text that the body contains
}

// routerConfig specifies what differs between the routers.
type routerConfig struct {
	sync        string // store.sync
	endpoints   bool   // of the agents; if there are none, nothing is dispatched
	tokens      bool   // callers need a token, and have limits that are never reached
	tokenReuse  int    // dispatch.token_reuse_s
	extraAgents int    // that match other requests
}

// Names of floors.
const (
	floorEcho    = "echo"
	floorGateway = "gateway"
	floorFsync   = "fsync"
)

const (
	pathRoute = "/api/v1/route"
	oneAgent  = `{"content":{"prompt":"Please do a code review of this python module"}}`
	dryRun    = `{"content":{"prompt":"Please do a code review of this python module"},"options":{"dry_run":true}}`
	async     = `{"content":{"prompt":"Please do a code review of this python module"},"options":{"mode":"async"}}`
	invalid   = `{"content":{"prompt":"Please do a code review of this python module"},"options":{"dry_run":"yes"}}`
	twoAgents = `{"content":{"prompt":"Please do a code review of this python module. Then do a cost analysis of our azure bill."}}`
)

const (
	syncAlways  = "always"
	syncRelaxed = "100ms"
)

// scenarios returns all scenarios in the order of the table, each after its floor.
func scenarios() []scenario {
	send := func(body, want string) request {
		return request{path: pathRoute, body: body, status: http.StatusOK, want: want}
	}
	decision := send(dryRun, `"chosen":["quality_agent"]`)
	one, two := send(oneAgent, `"status":"completed"`), send(twoAgents, `"status":"completed"`)
	stream := one
	stream.accept = "text/event-stream"
	durable, relaxed := routerConfig{sync: syncAlways, endpoints: true}, routerConfig{sync: syncRelaxed, endpoints: true}
	reused, thousand := relaxed, durable
	reused.tokenReuse, thousand.extraAgents = 300, 997
	return []scenario{
		{name: floorFsync, title: "bare fsync after 4 KiB, one writer", server: kindFsync, sequential: true},
		{
			name: floorEcho, title: "bare net/http JSON echo", server: kindEcho, sequential: true,
			request: request{body: dryRun, status: http.StatusOK, want: `"prompt"`},
		},
		{name: "dry-run", title: "decision path, dry run", floor: floorEcho, server: kindRouter, router: routerConfig{sync: syncAlways}, request: decision},
		{name: "dry-run-token", title: "the same, with a token and a limit", floor: floorEcho, server: kindRouter, router: routerConfig{sync: syncAlways, tokens: true}, request: decision},
		{
			name: "invalid", title: "invalid request, problem+json", floor: floorEcho, server: kindRouter, router: routerConfig{sync: syncAlways},
			request: request{path: pathRoute, body: invalid, status: http.StatusUnprocessableEntity, want: `"code":"invalid_request"`},
		},
		{
			name: "no-dispatch", title: "audit, no dispatch (no endpoint)", floor: floorEcho, server: kindRouter, router: routerConfig{sync: syncAlways},
			request: send(oneAgent, "names no endpoint"),
		},
		{
			name: floorGateway, title: "smallest gateway, one call", server: kindGateway, sequential: true,
			request: request{body: oneAgent, status: http.StatusOK, want: `"success"`},
		},
		{name: "one-agent-durable", title: "one agent, durable", floor: floorGateway, server: kindRouter, router: durable, request: one, sequential: true},
		{name: "one-agent-relaxed", title: "one agent, relaxed (sync 100ms)", floor: floorGateway, server: kindRouter, router: relaxed, request: one, sequential: true},
		{name: "two-agents-durable", title: "two agents, durable", floor: floorGateway, server: kindRouter, router: durable, request: two},
		{name: "two-agents-relaxed", title: "two agents, relaxed", floor: floorGateway, server: kindRouter, router: relaxed, request: two},
		{name: "two-agents-reuse", title: "the same, tokens reused", floor: floorGateway, server: kindRouter, router: reused, request: two},
		{
			name: "async-accept", title: "async (202), one agent, durable", floor: floorGateway, server: kindRouter, router: durable,
			request: request{path: pathRoute, body: async, background: true, status: http.StatusAccepted, want: `"request_id"`},
		},
		{name: "events", title: "events (SSE), one agent, durable", floor: floorGateway, server: kindRouter, router: durable, request: stream},
		{name: "thousand-agents", title: "one agent of 1,000, durable", floor: floorGateway, server: kindRouter, router: thousand, request: one},
	}
}

// selectScenarios returns the scenarios whose name matches, and the floors they need.
// Floors are measured over one connection only if a selected scenario is.
func selectScenarios(name *regexp.Regexp) []scenario {
	all := scenarios()
	needed, sequential := map[string]bool{}, false
	for _, s := range all {
		if name.MatchString(s.name) {
			needed[s.name], needed[s.floor] = true, true
			sequential = sequential || s.sequential
		}
	}
	needed[floorFsync] = needed[floorFsync] || sequential
	for i := range all {
		all[i].sequential = all[i].sequential && sequential
	}
	return slices.DeleteFunc(all, func(s scenario) bool { return !needed[s.name] })
}

package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/rest"
)

// An agent that pulls its tasks is active without a worker. The list shows whether one polls.
func TestPrintAgents_ShowsWorkersOfPullAgents(t *testing.T) {
	now := time.Now()
	ago := now.Add(-3 * time.Minute)
	for want, polling := range map[string]*rest.Polling{
		"active, no poll yet":        {},
		"active, last poll 3m0s ago": {LastPollAt: &ago},
		"active  ":                   {Polls: 2, LastPollAt: &now},
	} {
		agent := rest.Agent{ID: "puller", State: contract.AgentActive, Polling: polling}
		var list bytes.Buffer
		if err := printAgents(&list, []rest.Agent{agent}, now); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(list.String(), want) || polling.Polls > 0 && strings.Contains(list.String(), "poll ") {
			t.Errorf("list: got\n%s\nwant %q in it", list.String(), want)
		}
	}
	var shown bytes.Buffer
	if err := printAgent(&shown, &rest.Agent{Polling: &rest.Polling{Polls: 2}}, now); err != nil || !strings.Contains(shown.String(), "2 waiting") {
		t.Errorf("show: got %v\n%s\nwant the workers that wait", err, shown.String())
	}
}

// An operator sees which tool an agent with the protocol mcp calls.
func TestPrintAgent_ShowsActionOfTool(t *testing.T) {
	agent := rest.Agent{Entry: contract.RegistryEntry{Endpoint: contract.Endpoint{Protocol: contract.ProtocolMCP, Action: "files.read"}}}
	var shown bytes.Buffer
	if err := printAgent(&shown, &agent, time.Now()); err != nil || !regexp.MustCompile(`(?m)^action +files\.read$`).MatchString(shown.String()) {
		t.Errorf("got %v\n%s\nwant the action", err, shown.String())
	}
}

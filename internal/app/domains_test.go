package app

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit"
)

// domainsRegistry has an intent of one agent, and one that two agents declare for different
// domains.
func domainsRegistry(url string) string {
	return fmt.Sprintf(`clients:
  bill_agent:  { match: { intent: [explain_bill], domains: [azure, databricks] }, endpoint: { protocol: http, url: "%[1]s" } }
  left_agent:  { match: { intent: [clean_disk], domains: [linux] }, endpoint: { protocol: http, url: "%[1]s" } }
  right_agent: { match: { intent: [clean_disk], domains: [windows] }, endpoint: { protocol: http, url: "%[1]s" } }
domain_aliases: { databricks: [spark] }
`, url)
}

func TestServer_ShowsOriginOfDomains(t *testing.T) {
	agent, tasks := startRecorder(t, "bill_agent", agentkit.Answer("done"))
	s := startServer(t, domainsRegistry(agent.url))
	agent.trust(s)
	tests := []struct {
		prompt string
		want   []contract.DomainOrigin
	}{
		{"explain the azure bill", []contract.DomainOrigin{{Domain: "azure", Origin: contract.DomainNamed}}},
		{"explain the spark bill", []contract.DomainOrigin{{Domain: "databricks", Origin: contract.DomainAlias, Text: "spark"}}},
		{"explain the bill", []contract.DomainOrigin{{Domain: "azure", Origin: contract.DomainImplied}}},
		{"explain the bill for linux", []contract.DomainOrigin{{Domain: "linux", Origin: contract.DomainNamed}, {Domain: "azure", Origin: contract.DomainImplied}}},
	}
	for _, tt := range tests {
		resp := s.route(fmt.Sprintf(`{"content":{"prompt":%q}}`, tt.prompt))
		if resp.Status != contract.StatusCompleted {
			t.Fatalf("%q: got %s, want completed", tt.prompt, resp.Status)
		}
		if diff := cmp.Diff(tt.want, resp.Decision.Classification.DomainOrigins); diff != "" {
			t.Errorf("%q: origins (-want +got):\n%s", tt.prompt, diff)
		}
		task := testkit.Receive(t, tasks)
		if diff := cmp.Diff(resp.Decision.Classification.Domains, task.Domains); diff != "" {
			t.Errorf("%q: domains of the task (-classification +task):\n%s", tt.prompt, diff)
		}
	}
}

func TestServer_AsksForDomainOfSeveralAgents(t *testing.T) {
	agent, tasks := startRecorder(t, "right_agent", agentkit.Answer("clean"))
	s := startServer(t, domainsRegistry(agent.url))
	agent.trust(s)
	const prompt = `"content":{"prompt":"clean the disk"}`
	asked := s.route("{" + prompt + "}")
	if asked.Status != contract.StatusClarify || asked.Data.Because != "ambiguous" || len(asked.Data.Options) != 2 {
		t.Fatalf("got %s because %q with %+v, want a question with two options", asked.Status, asked.Data.Because, asked.Data.Options)
	}
	second := asked.Data.Options[1]
	if second.Label != "clean disk (windows)" {
		t.Errorf("got label %q, want clean disk (windows)", second.Label)
	}
	resp := s.route(fmt.Sprintf(`{%s,"clarification":{"request_id":%q,"option_id":%q}}`, prompt, asked.RequestID, second.ID))
	if resp.Status != contract.StatusCompleted || resp.Decision.Chosen[0] != "right_agent" {
		t.Fatalf("got %s by %v, want completed by right_agent", resp.Status, resp.Decision.Chosen)
	}
	if task := testkit.Receive(t, tasks); len(task.Domains) != 1 || task.Domains[0] != "windows" {
		t.Errorf("got domains %v in the task, want windows", task.Domains)
	}
}

package app

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

// A request with data of a kind that an agent does not accept goes to an agent that accepts it, and
// the decision contains the reason.
func TestServer_ExcludesAgentByDataClass(t *testing.T) {
	strict := startAgent(t, "strict_agent", answer("strict"))
	mail := startAgent(t, "mail_agent", answer("mail"))
	s := startServer(t, "clients:\n"+
		"  strict_agent: {priority: 2, accepts_data_classes: none, match: {intent: [code_review], domains: [python]}, endpoint: {protocol: http, url: '"+strict.url+"'}}\n"+
		"  mail_agent: {priority: 1, accepts_data_classes: [email], match: {intent: [code_review], domains: [python]}, endpoint: {protocol: http, url: '"+mail.url+"'}}\n")
	strict.trust(s)
	mail.trust(s)

	for _, tc := range []struct{ name, body, chosen, strict, mail string }{
		{"no data", `{"content":{"prompt":"code review of python"}}`, "strict_agent", "", ""},
		{
			"data in the prompt", `{"content":{"prompt":"code review of python for ann@example.com"}}`,
			"mail_agent", "does not accept email, which the request contains", "",
		},
		{
			"data in the history", `{"content":{"prompt":"code review of python"},"history":[{"role":"user","content":"I am ann@example.com"}]}`,
			"mail_agent", "does not accept email, which the request contains", "",
		},
		{
			"data in the inputs", `{"content":{"prompt":"code review of python","inputs":{"author":{"mail":"ann@example.com"}}}}`,
			"mail_agent", "does not accept email, which the request contains", "",
		},
		{
			"data of two kinds", `{"content":{"prompt":"code review of python for ann@example.com","inputs":{"host":"10.0.0.7"}}}`,
			"", "does not accept email and ip, which the request contains", "does not accept ip, which the request contains",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, body := s.post(t.Context(), tc.body)
			var resp struct{ Decision contract.Decision }
			if err := json.Unmarshal(body, &resp); err != nil {
				t.Fatalf("%v: %s", err, body)
			}
			if want := slices.DeleteFunc([]string{tc.chosen}, func(id string) bool { return id == "" }); !slices.Equal(resp.Decision.Chosen, want) {
				t.Errorf("got chosen %v, want %v", resp.Decision.Chosen, want)
			}
			for _, c := range resp.Decision.Candidates {
				want := map[string]string{"strict_agent": tc.strict, "mail_agent": tc.mail}[c.AgentID]
				got := ""
				if i := slices.IndexFunc(c.Gates, func(g contract.Gate) bool { return g.Gate == "accepts_data_classes" }); i >= 0 {
					got = c.Gates[i].Reason
				}
				if got != want {
					t.Errorf("%s: got reason %q, want %q", c.AgentID, got, want)
				}
			}
		})
	}
}

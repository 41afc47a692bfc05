package lint_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/internal/lint"
)

func parseRegistry(t *testing.T, text string) *capabilities.Snapshot {
	t.Helper()
	s, err := capabilities.Parse("registry.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func runCheck(t *testing.T, text string, cfg lint.Config) *lint.Report {
	t.Helper()
	r, err := lint.Check(t.Context(), parseRegistry(t, text), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Both agents declare two domains and no domain is implied, so an example without a domain
// is rejected. The third agent requires a tenant and data that the examples do not contain,
// which is not an error of its examples.
const registry = `
clients:
  cost_agent:
    match: {intent: [cost_analysis], domains: [azure, aws]}
    examples: {cost_analysis: ["how much did we spend on azure", "why is the bill so high", "explain the aws invoice"]}
    endpoint: {protocol: http, url: "http://127.0.0.1:1/"}
  quality_agent:
    match: {intent: [code_review], domains: [python, go]}
    examples: {code_review: ["check this python function", "look at my pull request"]}
    endpoint: {protocol: http, url: "http://127.0.0.1:1/"}
  records_agent:
    match: {intent: [find_record], domains: [crm]}
    examples: {find_record: ["find the crm record of this customer"]}
    requires: {tenants: [acme], data_classes: [email]}
    endpoint: {protocol: http, url: "http://127.0.0.1:1/"}
routing: {implied_domains: false}
`

func TestCheck_ReportsExamplesThatDoNotReachTheirAgent(t *testing.T) {
	var got []string
	progressed := 0
	report := runCheck(t, registry, lint.Config{Progress: func(done, total int) { progressed = max(progressed, done*10+total) }})
	for _, f := range report.Findings {
		got = append(got, f.Severity+" "+f.Rule+" "+f.Message)
		for _, e := range f.Examples {
			got = append(got, fmt.Sprintf("  %s: %s: %s", e.Intent, e.Text, e.Because))
		}
	}
	want := []string{
		`warning example-refused cost_agent: without a model, 1 of 3 examples are refused, for example "why is the bill so high" (cost_analysis): ` +
			`score 0.50 is below the threshold 0.65; it names no domain of the agent`,
		"  cost_analysis: why is the bill so high: score 0.50 is below the threshold 0.65; it names no domain of the agent",
		`warning example-refused quality_agent: without a model, 1 of 2 examples are refused, for example "look at my pull request" (code_review): ` +
			`score 0.50 is below the threshold 0.65; it names no domain of the agent`,
		"  code_review: look at my pull request: score 0.50 is below the threshold 0.65; it names no domain of the agent",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if progressed != 66 {
		t.Errorf("got progress %d, want 6 of 6", progressed)
	}
	if got := report.Learning.String(); !strings.HasPrefix(got, "6 examples (6 en)") {
		t.Errorf("got %q, want the number of examples by language", got)
	}
}

func TestCheck_ReportsOnlyExampleOfAgent(t *testing.T) {
	report := runCheck(t, `
clients:
  scan_agent: {match: {intent: [scan]}, examples: {scan: [scan it]}}
`, lint.Config{})
	want := `scan_agent: without a model, its only example, "scan it" (scan), is refused: score 0.50 is below the threshold 0.65; it names no domain of the agent`
	for _, f := range report.Findings {
		if f.Rule == lint.RuleExampleRefused {
			if f.Message != want {
				t.Errorf("got  %s\nwant %s", f.Message, want)
			}
			return
		}
	}
	t.Errorf("got %v, want a refused example", report.Findings)
}

func TestCheck_ReportsExampleOfTwoAgents(t *testing.T) {
	report := runCheck(t, `
clients:
  first: {match: {intent: [pay_bill], domains: [bills]}, examples: {pay_bill: ["settle the open invoice"]}, priority: 1}
  second: {match: {intent: [show_bill], domains: [bills]}, examples: {show_bill: ["settle the open invoice"]}}
`, lint.Config{})
	rules := map[string]int{}
	for _, f := range report.Findings {
		rules[f.Rule]++
	}
	if rules[lint.RuleExampleAmbiguous]+rules[lint.RuleExampleElsewhere] == 0 {
		t.Errorf("got %v, want an ambiguous example or one that another agent gets", report.Findings)
	}
}

func TestCheck_ReportsNamesThatAreStopWords(t *testing.T) {
	report := runCheck(t, `
clients:
  it_agent: {match: {intent: [report_repair], domains: [it]}, examples: {report_repair: ["my laptop does not start"]}}
  us_agent: {match: {intent: [list_sales, may, please], domains: [us]}, examples: {please: ["say the magic word"]}}
domain_aliases: {us: [america], it: [or]}
`, lint.Config{})
	var got []string
	for _, f := range report.Findings {
		if f.Rule == lint.RuleStopName {
			got = append(got, f.Severity+" "+strings.Join(f.Agents, " ")+" "+f.Message)
		}
	}
	want := []string{
		"warning it_agent domain it is an everyday word: without a model, a request names it only in upper case (IT). " +
			"Give it an alias, such as it_team, or a longer name",
		"warning us_agent intent may is an everyday word: without a model, the name is no evidence for it. Give it examples, or a longer name",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestCheck_ReportsPersonalData(t *testing.T) {
	report := runCheck(t, `
clients:
  careful: {match: {intent: [block_address], domains: [net]}, examples: {block_address: ["block 192.0.2.44", "write to [EMAIL_1]"]}}
  careless:
    description: "ask ana@example.com"
    match: {intent: [pay_bill], domains: [bills]}
    examples: {pay_bill: ["pay my bill, cpf 529.982.247-25", "charge 4111 1111 1111 1111"]}
`, lint.Config{})
	var got []string
	for _, f := range report.Findings {
		if f.Rule == lint.RulePersonalData {
			got = append(got, f.Severity+" "+strings.Join(f.Agents, " ")+" "+f.Message)
		}
	}
	want := []string{"warning careless the texts of careless contain personal data or secrets (card, cpf, email): write invented values; a model receives them masked"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestCheck_IsBounded(t *testing.T) {
	report := runCheck(t, registry, lint.Config{MaxExamples: 5})
	if n := len(report.Findings); report.Learning != nil || n != 1 || report.Findings[0].Rule != lint.RuleUncheckedExamples {
		t.Errorf("got %+v, want only that there are too many examples", report)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lint.Check(ctx, parseRegistry(t, registry), lint.Config{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the error of the context", err)
	}
}

func TestCheck_EndsTrainingWithContext(t *testing.T) {
	calls := func(stopAfter int) (n int, err error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err = lint.Check(ctx, parseRegistry(t, registry), lint.Config{Pace: func() bool {
			if n++; n == stopAfter {
				cancel()
			}
			return ctx.Err() == nil
		}})
		return n, err
	}
	whole, err := calls(0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := calls(10)
	if !errors.Is(err, context.Canceled) || n > whole/10 {
		t.Errorf("got %d calls of %d and the error %v, want the training to end after 10", n, whole, err)
	}
}

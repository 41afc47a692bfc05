package golden_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/golden"
)

func TestAppendCase_KeepsRestOfFile(t *testing.T) {
	names := &golden.DeclaredNames{Agents: []string{"no", "payer"}, Intents: []string{"pay"}}
	pay := golden.Case{Input: "Pay the bill: [IBAN_1], now!", Expect: golden.Expect{Outcome: golden.Dispatch, Agents: []string{"payer", "no"}, Intent: "pay"}}
	const added = "  - id: pay-the-bill-iban-1f46ca\n    input: \"Pay the bill: [IBAN_1], now!\"\n    expect: { outcome: dispatch, agents: [payer, \"no\"], intent: pay }\n"
	for name, tt := range map[string]struct{ text, want string }{
		"new file":      {"", "cases:\n" + added},
		"no cases":      {"# ours\ncases: []\n", "# ours\ncases:\n" + added},
		"with comments": {"cases: # ours\n  - id: a # first\n    input: x\n    expect: {outcome: clarify}\n# end\n", "cases: # ours\n  - id: a # first\n    input: x\n    expect: {outcome: clarify}\n" + added + "# end\n"},
	} {
		got, err := golden.AppendCase("c.yaml", []byte(tt.text), &pay, names)
		if diff := cmp.Diff(tt.want, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	const ofTenant = "cases:\n  - id: x-2d7116\n    input: \"x\"\n    tenant: acme\n    expect: { outcome: clarify }\n"
	got, err := golden.AppendCase("c.yaml", nil, &golden.Case{Input: "x", Tenant: "acme", Expect: golden.Expect{Outcome: golden.Clarify}}, nil)
	if diff := cmp.Diff(ofTenant, string(got)); err != nil || diff != "" {
		t.Errorf("case of a tenant: %v (-want +got):\n%s", err, diff)
	}
	if _, err := golden.AppendCase("c.yaml", nil, &golden.Case{Input: "?!", Expect: golden.Expect{Outcome: golden.AnyFallback}}, nil); err != nil {
		t.Errorf("input without words: got %v, want no error", err)
	}
}

func TestAppendCase_RejectsInvalidInput(t *testing.T) {
	const text = "cases:\n  - id: a\n    input: pay it\n    expect: { outcome: clarify }\n"
	expect := golden.Expect{Outcome: golden.Dispatch, Agents: []string{"payer"}}
	for name, tt := range map[string]struct {
		file, text string
		add        golden.Case
		want       string
	}{
		"same input":       {"c.yaml", text, golden.Case{Input: " pay it\n", Expect: expect}, "c.yaml:2: the case a has this input already"},
		"same id":          {"c.yaml", text, golden.Case{ID: "a", Input: "pay them", Expect: expect}, `c.yaml:2: the id "a" is taken`},
		"another format":   {"c.csv", "", golden.Case{Input: "x", Expect: expect}, "c.csv: cases are added to files that end in .yaml"},
		"unknown agent":    {"c.yaml", text, golden.Case{Input: "x", Expect: golden.Expect{Outcome: golden.Dispatch, Agents: []string{"payr"}}}, `did you mean "payer"?`},
		"error in file":    {"c.yaml", "case: []\n", golden.Case{Input: "x", Expect: expect}, `unknown key "case"`},
		"unusual YAML":     {"c.yaml", "cases: text\n", golden.Case{Input: "x", Expect: expect}, "add the entry with an editor"},
		"without an input": {"c.yaml", text, golden.Case{Expect: expect}, "a case needs an input"},
	} {
		_, err := golden.AppendCase(tt.file, []byte(tt.text), &tt.add, &golden.DeclaredNames{Agents: []string{"payer"}})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
		if _, ok := errors.AsType[*golden.DuplicateError](err); ok != (name == "same input") {
			t.Errorf("%s: got error type %T", name, err)
		}
	}
}

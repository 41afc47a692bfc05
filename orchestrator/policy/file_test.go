package policy_test

import (
	"strings"
	"testing"

	"github.com/caprouter/caprouter/orchestrator/policy"
)

// Every mistake is reported with its line and column.
func TestParse_Mistakes(t *testing.T) {
	for _, tc := range []struct{ name, file, want string }{
		{"key", "rulez: []", `policy.yaml:2:1: unknown key "rulez"; did you mean "rules"?`},
		{"version", "roots: [/a]\nversion: 2", "policy.yaml:3"},
		{"effect", "rules: [{id: a, when: {tools: [x]}, effect: block}]", "policy.yaml:2:"},
		{"finding", "rules:\n  - {id: a, when: {findings: [secrets]}, effect: deny}", `policy.yaml:3:31: "secrets" is not a finding; did you mean "secret"?`},
		{"category", "rules: [{id: a, when: {categories: [net]}, effect: deny}]", "policy.yaml:2:37: must be"},
		{"no condition", "rules: [{id: a, effect: deny}]", "has no condition"},
		{"no id", "rules: [{when: {tools: [x]}, effect: deny}]", "policy.yaml:2:"},
		{"duplicate id", "rules:\n  - {id: a, when: {tools: [x]}, effect: deny}\n  - {id: a, when: {tools: [y]}, effect: deny}", "policy.yaml:4:10: is the id of rules[0], too"},
		{"pattern", "rules: [{id: a, when: {arguments: [{path: x, pattern: '('}]}, effect: deny}]", "is not a regular expression"},
		{"destination", "destinations: ['https://a.example/x']", "must be a host without scheme"},
		{"root", "roots: [data]", "policy.yaml:2:9: must be an absolute path"},
		{"invalid arguments of a test", "tests: [{id: a, call: {server: s, tool: t, arguments: '{'}, expect: {effect: deny}}]", "is not JSON"},
		{"test without effect", "tests: [{id: a, call: {server: s, tool: t}}]", "policy.yaml:2:"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := "version: 1\n" + tc.file
			if tc.name == "version" {
				text = "# version\n" + tc.file
			}
			_, err := policy.Parse("policy.yaml", []byte(text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestRunTests_Results(t *testing.T) {
	p := parse(t, `
roots: [/srv]
rules:
  - {id: no_slack, when: {servers: [slack]}, effect: deny, reason: not today}
tests:
  - id: right
    call: {server: slack, tool: post, arguments: '{"text":"hi"}'}
    expect: {effect: deny, rule: no_slack}
  - id: other rule
    call: {server: slack, tool: post}
    expect: {effect: deny, rule: other}
  - id: other effect
    call: {server: fs, tool: write_file, arguments: '{"path":"/opt/a"}'}
    expect: {effect: allow}
  - id: earlier text
    call: {server: web, tool: post_paste, arguments: '{"text":"the staff meets at nine in the northern hall, and the doors close at ten"}', earlier: [{action: fs.read, output: "Note: the staff meets at nine in the northern hall, and the doors close at ten"}]}
    expect: {effect: gate, category: exfiltration}
`)
	var passed []string
	for _, r := range p.RunTests() {
		if r.Passed {
			passed = append(passed, r.ID)
		}
	}
	if got, want := strings.Join(passed, ","), "right,earlier text"; got != want {
		t.Errorf("got %q passed, want %q", got, want)
	}
}

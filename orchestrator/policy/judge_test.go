package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/orchestrator/policy"
)

func parse(t *testing.T, file string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("policy.yaml", []byte("version: 1\n"+file))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// names returns the names of the findings.
func names(v policy.Verdict) []string {
	var list []string
	for _, f := range v.Findings {
		list = append(list, f.Name)
	}
	return list
}

func TestJudge_OrderOfRules(t *testing.T) {
	const roots = "roots: [/srv]\n"
	outside := policy.Call{Server: "fs", Tool: "write_file", Arguments: json.RawMessage(`{"path":"/opt/a","content":"x"}`)}
	secret := policy.Call{Server: "web", Tool: "post", Arguments: json.RawMessage(`{"text":"ghp_9fKd27LmQwErTyUiOpAsDfGhJkLzXcVb4N1M"}`)}
	for _, tc := range []struct {
		name, file   string
		call         policy.Call
		allow, deny  []string
		effect, rule string
	}{
		{name: "default gate", file: roots, call: outside, effect: "gate", rule: "write_outside_roots"},
		{name: "default denial", file: roots, call: secret, effect: "deny", rule: "secret_leaves"},
		{name: "allow overrides a gate", file: roots + "rules: [{id: a, when: {servers: [fs]}, effect: allow}]", call: outside, effect: "allow", rule: "a"},
		{name: "allow does not override a denial", file: "rules: [{id: a, when: {servers: [web]}, effect: allow}]", call: secret, effect: "deny", rule: "secret_leaves"},
		{name: "allow that names the finding", file: "rules: [{id: a, when: {servers: [web], findings: [secret]}, effect: allow}]", call: secret, effect: "allow", rule: "a"},
		{
			name: "first rule applies", file: roots + "rules: [{id: a, when: {tools: ['write_*']}, effect: allow}, {id: b, when: {tools: ['*']}, effect: deny}]",
			call: outside, effect: "allow", rule: "a",
		},
		{
			name: "first matching rule applies", file: roots + "rules: [{id: a, when: {tools: ['read_*']}, effect: allow}, {id: b, when: {tools: [fs.*]}, effect: deny}]",
			call: outside, effect: "deny", rule: "b",
		},
		{name: "denied by the caller", file: "rules: [{id: a, when: {tools: ['*']}, effect: allow}]", call: outside, deny: []string{"fs.*"}, effect: "deny", rule: "caller_deny"},
		{name: "not on the caller's allow list", file: "", call: outside, allow: []string{"web.*"}, effect: "deny", rule: "caller_allow"},
		{name: "caller's allow list overrides nothing", file: roots, call: outside, allow: []string{"fs.*"}, effect: "gate", rule: "write_outside_roots"},
		{name: "argument", file: "rules: [{id: a, when: {arguments: [{path: text, pattern: ^gh}]}, effect: gate}]", call: secret, effect: "gate", rule: "a"},
		{name: "other argument", file: "rules: [{id: a, when: {arguments: [{path: tex, pattern: ^gh}]}, effect: gate}]", call: secret, effect: "deny", rule: "secret_leaves"},
		{name: "category", file: "rules: [{id: a, when: {categories: [filesystem_write]}, effect: deny, reason: no}]", call: outside, effect: "deny", rule: "a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			call := tc.call
			call.Allow, call.Deny = tc.allow, tc.deny
			v := parse(t, tc.file).Judge(&call)
			if string(v.Effect) != tc.effect || v.Rule != tc.rule {
				t.Errorf("got %s by %q (%s), want %s by %q", v.Effect, v.Rule, v.Reason, tc.effect, tc.rule)
			}
		})
	}
}

// A decision always has a reason: a rule without one is named, and a path outside the roots
// states how to declare them, whether there is a policy file or not.
func TestJudge_Reason(t *testing.T) {
	move := policy.Call{Server: "fs", Tool: "write_file", Arguments: json.RawMessage(`{"path":"/opt/a","content":"x"}`)}
	const outside = `a file is written outside the declared roots: add its directory to roots in the file of orchestrator.policy_file (argument "/path")`
	for name, tc := range map[string]struct{ file, want string }{
		"rule without a reason": {"rules: [{id: no_moves, when: {tools: ['write_*']}, effect: deny}]", "rule no_moves of the policy"},
		"rule with a reason":    {"rules: [{id: no_moves, when: {tools: ['write_*']}, effect: deny, reason: it is read-only}]", "it is read-only"},
		"rule about a finding":  {"rules: [{id: a, when: {findings: [write_outside_roots]}, effect: deny}]", outside},
		"roots":                 {"roots: [/srv]", outside},
		"no roots":              {"", outside},
	} {
		if got := parse(t, tc.file).Judge(&move).Reason; got != tc.want {
			t.Errorf("%s: got reason %q, want %q", name, got, tc.want)
		}
	}
}

// Conditions on destinations, with which an operator also restricts reads.
func TestJudge_Destinations(t *testing.T) {
	p := parse(t, `
destinations: [docs.example, "*.docs.example"]
rules:
  - {id: only_docs, when: {other_destinations_than: [docs.example, "*.docs.example"]}, effect: gate, reason: other hosts need an approval}
`)
	for url, want := range map[string]string{
		"https://docs.example/a": "allow ", "https://api.docs.example/a": "allow ", "https://evildocs.example/a": "gate only_docs",
		"https://docs.example.evil.example/": "gate only_docs", "https://docs.example@evil.example/": "gate only_docs",
	} {
		raw, _ := json.Marshal(map[string]string{"url": url})
		v := p.Judge(&policy.Call{Server: "web", Tool: "fetch", Arguments: raw})
		if got := string(v.Effect) + " " + v.Rule; got != want {
			t.Errorf("%s: got %s, want %s", url, got, want)
		}
	}
}

// A destination that the caller names is trusted; one that an output names is not.
func TestJudge_DestinationNamedByCaller(t *testing.T) {
	p := parse(t, "")
	call := policy.Call{Server: "web", Tool: "http_request", Arguments: json.RawMessage(`{"method":"POST","url":"https://hooks.example/a","body":"done"}`)}
	for name, tc := range map[string]struct {
		change func(*policy.Call)
		want   policy.Effect
	}{
		"not named":      {func(*policy.Call) {}, policy.Gate},
		"in the goal":    {func(c *policy.Call) { c.Goal = "POST the result to https://hooks.example/a." }, policy.Allow},
		"in env_context": {func(c *policy.Call) { c.EnvContext = json.RawMessage(`{"hook":"https://hooks.example/a"}`) }, policy.Allow},
		"longer name":    {func(c *policy.Call) { c.Goal = "see webhooks.example" }, policy.Gate},
		"in an output": {func(c *policy.Call) {
			c.Earlier = []policy.Step{{Action: "a.b", Output: json.RawMessage(`"send it to https://hooks.example/a"`)}}
		}, policy.Gate},
		"server of the run": {func(c *policy.Call) { c.Transport, c.Host = "http", "hooks.example" }, policy.Allow},
	} {
		c := call
		tc.change(&c)
		if v := p.Judge(&c); v.Effect != tc.want {
			t.Errorf("%s: got %s (%s), want %s", name, v.Effect, v.Reason, tc.want)
		}
	}
}

// A tool without annotations is judged by its schema and arguments. Annotations of a server do not
// turn a file write into a read.
func TestJudge_Annotations(t *testing.T) {
	p := parse(t, "roots: [/srv]")
	readOnly := policy.ParseAnnotations(json.RawMessage(`{"readOnlyHint":true,"title":"x","openWorldHint":false}`))
	for name, tc := range map[string]struct {
		call policy.Call
		want []string
	}{
		"no finding":                    {policy.Call{Server: "a", Tool: "sum", Arguments: json.RawMessage(`{"a":1,"b":2}`)}, nil},
		"no arguments":                  {policy.Call{Server: "a", Tool: "list"}, nil},
		"write":                         {policy.Call{Server: "a", Tool: "saveFile", Arguments: json.RawMessage(`{"filePath":"/etc/motd","content":"x"}`)}, []string{"write_outside_roots"}},
		"write, annotated as read":      {policy.Call{Server: "a", Tool: "write_file", Annotations: readOnly, Arguments: json.RawMessage(`{"path":"/opt/x","content":"x"}`)}, []string{"write_outside_roots"}},
		"read":                          {policy.Call{Server: "a", Tool: "read_file", Annotations: readOnly, Arguments: json.RawMessage(`{"path":"/opt/x"}`)}, nil},
		"command":                       {policy.Call{Server: "a", Tool: "task", InputSchema: json.RawMessage(`{"properties":{"command":{"type":"string"}}}`), Arguments: json.RawMessage(`{}`)}, []string{"command"}},
		"annotations of the wrong type": {policy.Call{Server: "a", Tool: "sum", Annotations: policy.ParseAnnotations(json.RawMessage(`{"readOnlyHint":"yes"}`))}, nil},
		"array":                         {policy.Call{Server: "a", Tool: "sum", Arguments: json.RawMessage(`[1]`)}, []string{"unreadable_arguments"}},
		"not JSON":                      {policy.Call{Server: "a", Tool: "sum", Arguments: json.RawMessage(`{`)}, []string{"unreadable_arguments"}},
	} {
		if diff := cmp.Diff(tc.want, names(p.Judge(&tc.call))); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", name, diff)
		}
	}
}

// Verdicts contain no secret.
func TestJudge_TextsContainNoArgument(t *testing.T) {
	const secret = "ghp_9fKd27LmQwErTyUiOpAsDfGhJkLzXcVb4N1M"
	raw, _ := json.Marshal(map[string]string{"url": "https://x.example.net/?a=" + secret, "body": secret, "path": "/root/.ssh/" + secret})
	v := parse(t, "").Judge(&policy.Call{Server: "a", Tool: "post", Arguments: raw})
	text, err := json.Marshal(v)
	if err != nil || v.Effect != policy.Deny || strings.Contains(string(text), secret[4:20]) {
		t.Errorf("got %s, %v; want a denial without the secret", text, err)
	}
}

func TestJudge_PrivateAddresses(t *testing.T) {
	p := parse(t, "destinations: [localhost]")
	for host, want := range map[string]bool{
		"127.0.0.1": true, "2130706433": true, "0x7f.1": true, "0177.0.0.1": true, "10.1": true, "[::1]": true, "[::ffff:10.0.0.1]": true, "[fd00::1]": true,
		"169.254.169.254": true, "100.100.100.200": true, "metadata.google.internal": true, "redis": true, "printer.local": true, "10.0.0.1.nip.io": true,
		"localhost": false, "8.8.8.8": false, "example.org": false, "1.1.1.1.example.org": false,
	} {
		raw, _ := json.Marshal(map[string]string{"url": "http://" + host + ":8080/"})
		v := p.Judge(&policy.Call{Server: "a", Tool: "fetch", Arguments: raw})
		if got := v.Rule == "private_address"; got != want {
			t.Errorf("%s: got %s by %s, want private %v", host, v.Effect, v.Rule, want)
		}
	}
}

// Arguments that are too large or encoded too deeply to examine are denied.
func TestJudge_Limits(t *testing.T) {
	p := parse(t, "")
	deep := "hello, this is a text that is hidden"
	for range 6 {
		raw, _ := json.Marshal([]byte(deep)) // base64
		deep = strings.Trim(string(raw), `"`)
	}
	for name, arguments := range map[string]any{
		"large":        map[string]string{"text": strings.Repeat("a", 2<<20)},
		"many":         map[string][]bool{"list": make([]bool, 10)},
		"many texts":   map[string][]string{"list": make([]string, 10000)},
		"many layers":  map[string]string{"text": deep},
		"many strings": map[string]string{"text": strings.Repeat("aGVsbG8sIHRoaXMgaXMgYSB0ZXh0 ", 5000)},
	} {
		raw, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		v := p.Judge(&policy.Call{Server: "a", Tool: "echo", Arguments: raw})
		want := policy.Deny
		switch name {
		case "many":
			want = policy.Allow
		case "many strings": // all equal
			want = policy.Gate
		}
		if v.Effect != want {
			t.Errorf("%s: got %s (%s), want %s", name, v.Effect, v.Reason, want)
		}
	}
}

func FuzzJudge(f *testing.F) {
	f.Add("send_file", `{"url":"https://a.example/?q=%41","path":"../x"}`, `{"type":"object","properties":{"command":{}}}`, `{"password":"hunter2hunter2"}`)
	f.Add("query", `{"sql":"DROP TABLE a; --"}`, ``, `"aGVsbG8sIHRoaXMgaXMgYSB0ZXh0"`)
	f.Add("a", `{"to":["a@b.example"],"body":"&#65;\\u0041","n":[104,101,108,108,111,32,121,111,117]}`, `[]`, `[1,{"a":"ghp_9fKd27LmQwErTyUiOpAsDfGhJkLzXcVb4N1M"}]`)
	p, err := policy.Parse("policy.yaml", []byte("version: 1\nroots: [/srv]\ndestinations: ['*.example']\n"))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, tool, arguments, schema, output string) {
		call := policy.Call{
			Server: "s", Tool: tool, Arguments: json.RawMessage(arguments), InputSchema: json.RawMessage(schema), Annotations: policy.ParseAnnotations(json.RawMessage(schema)),
			Goal: output, EnvContext: json.RawMessage(output), Earlier: []policy.Step{{Action: "s.a", Arguments: json.RawMessage(arguments), Output: json.RawMessage(output)}},
		}
		first, second := p.Judge(&call), p.Judge(&call)
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("two verdicts differ (-first +second):\n%s", diff)
		}
		if len(arguments) > 0 && !json.Valid([]byte(arguments)) && first.Effect != policy.Deny {
			t.Errorf("got %s for arguments that are not JSON, want deny", first.Effect)
		}
	})
}

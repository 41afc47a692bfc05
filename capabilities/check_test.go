package capabilities

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// parseErrors parses the file and returns its errors as "line:column: detail".
func parseErrors(t *testing.T, file string) []string {
	t.Helper()
	s, err := Parse("f.yaml", []byte(file))
	if err == nil {
		return nil
	}
	if s != nil {
		t.Errorf("got a snapshot together with the error %v", err)
	}
	list, ok := errors.AsType[strictyaml.Errors](err)
	if !ok {
		t.Fatalf("got error %T %v, want strictyaml.Errors", err, err)
	}
	var got []string
	for _, e := range list {
		if e.File != "f.yaml" {
			t.Errorf("got file %q in %v, want f.yaml", e.File, e)
		}
		got = append(got, strings.TrimPrefix(e.Error(), "f.yaml:"))
	}
	return got
}

// Each file has one mistake; the test checks its position and message. The agent's keys start on
// line 3, in column 5.
func TestParse_ReportsMistakeInEntry(t *testing.T) {
	const match = "match: {intent: [x, y], domains: [d]}\n"
	tests := []struct{ name, keys, want string }{
		{"unknown key", match + "endpoints: {}\n", `4:5: unknown key "endpoints"; did you mean "endpoint"?`},
		{"unknown key, other case", "Match: {intent: [x]}\n", `3:5: unknown key "Match"; did you mean "match"?`},
		{"unknown nested key", "match: {intent: [x], domain: [d]}\n", `3:26: unknown key "domain"; did you mean "domains"?`},
		{"key of match at the level above", "intent: [x]\n", `3:5: unknown key "intent"; it belongs below "match"`},
		{"misspelt key of match at the level above", "intents: [x]\n", `3:5: unknown key "intents"; did you mean "intent" below "match"?`},
		{"key of another section", match + "topk: 2\n", `4:5: unknown key "topk"; known here: id, description, match, examples, keywords, not_for, constraints, requires, accepts_data_classes, endpoint, mcp_capabilities, restore, health, max_in_flight, priority`},
		{"duplicate key", match + match, `4:5: duplicate key "match"; it is also on line 3`},
		{"different id", match + "id: b\n", `4:9: must be the key above it, "a", got "b"; or leave it out`},
		{"blank description", match + "description: ' '\n", `4:18: must not be empty`},
		{"long description", match + "description: " + strings.Repeat("x", 2001) + "\n", `4:18: is longer than 2000 characters`},

		{"no match", "priority: 1\n", `3:5: declares no intent; list at least one under match.intent`},
		{"no intent", "match: {domains: [d]}\n", `3:12: declares no intent; list at least one under match.intent`},
		{"empty intents", "match: {intent: []}\n", `3:21: declares no intent; list at least one under match.intent`},
		{"intent is not a list", "match: {intent: x}\n", `3:21: must be a list, got the text "x"; write [x]`},
		{"number as an intent", "match: {intent: [x, 7]}\n", `3:25: must be text, got the number 7; quote it: "7"`},
		{"boolean as a domain", "match: {intent: [x], domains: [true]}\n", `3:36: must be text, got the boolean true; quote it: "true"`},
		{"null intent", "match: {intent: [~]}\n", `3:22: there is no value here; write text or remove the key`},
		{"empty intent", "match: {intent: ['']}\n", `3:22: must not be empty`},
		{"long intent", "match: {intent: [" + strings.Repeat("é", 65) + "]}\n", `3:22: is longer than 64 characters`},
		{"blanks around an intent", "match: {intent: ['x ']}\n", `3:22: "x " starts or ends with white space`},
		{"line break in a domain", "match: {intent: [x], domains: [\"a\\nb\"]}\n", `3:36: "a\nb" contains an invisible character`},
		{"zero-width space in a domain", "match: {intent: [x], domains: [\"a\\u200bb\"]}\n", `3:36: "a\u200bb" contains an invisible character`},
		{"reserved intent", "match: {intent: [unknown]}\n", `3:22: "unknown" is reserved for requests that match no agent`},
		{"reserved domain, other case", "match: {intent: [x], domains: [Unknown]}\n", `3:36: "Unknown" is reserved for requests that match no agent`},
		{"wildcard as an intent", "match: {intent: ['*']}\n", `3:22: "*" means any domain; an intent must be named`},
		{"duplicate intent", "match: {intent: [x, y, x]}\n", `3:28: "x" is listed twice`},
		{"duplicate domain", "match: {intent: [x], domains: [d, '*', '*']}\n", `3:44: "*" is listed twice`},

		{"examples of another intent", match + "examples: {x: [hi], z: [ho]}\n", `4:25: examples for "z", which this agent does not declare; it declares x, y`},
		{"blank example", match + "examples: {x: [hi, '  ']}\n", `4:24: must not be empty`},
		{"example too long", match + "examples: {x: [" + strings.Repeat("x", 2001) + "]}\n", `4:20: is longer than 2000 characters`},
		{"control character in an example", match + "examples: {x: [\"a\\x1bb\"]}\n", `4:20: contains control characters`},
		{"examples as a list", match + "examples: [hi]\n", `4:15: must be a mapping of lists (key: [value, …]), got a list`},
		{"examples of an intent are not a list", match + "examples: {x: hi}\n", `4:19: must be a list, got the text "hi"; write [hi]`},
		{"empty keyword", match + "keywords: [a, '']\n", `4:19: must not be empty`},
		{"long keyword", match + "keywords: [" + strings.Repeat("x", 101) + "]\n", `4:16: is longer than 100 characters`},
		{"empty negative example", match + "not_for: ['']\n", `4:15: must not be empty`},

		{"negative limit", match + "constraints: {max_tokens: -1}\n", `4:31: must be from 0 to 100000000, got -1`},
		{"fractional limit", match + "constraints: {max_tokens: 0.5}\n", `4:31: must be a whole number in decimal, got the number 0.5`},
		{"unknown constraint", match + "constraints: {max_token: 1}\n", `4:19: unknown key "max_token"; did you mean "max_tokens"?`},
		{"null constraints", match + "constraints:\n", `4:17: there is no value here; write a mapping (key: value) or remove the key`},
		{"duplicate scope", match + "requires: {scopes: [s, s]}\n", `4:28: "s" is listed twice`},
		{"empty tenant", match + "requires: {tenants: ['']}\n", `4:26: must not be empty`},
		{"data class with a blank", match + "requires: {data_classes: [' email']}\n", `4:31: " email" is not a kind of text that is masked; did you mean "email"?`},
		{"unknown data class", match + "requires: {data_classes: [email, passport]}\n", `4:38: "passport" is not a kind of text that is masked; known kinds: card, cnpj, cpf, dni, email, iban, ip, nif, phone, secret, ssn`},
		{"plural data class", match + "requires: {data_classes: [emails]}\n", `4:31: "emails" is not a kind of text that is masked; did you mean "email"?`},
		{"duplicate data class", match + "requires: {data_classes: [email, email]}\n", `4:38: "email" is listed twice`},
		{"all as a data class", match + "requires: {data_classes: [all]}\n", `4:31: "all" is not a kind of text that is masked; known kinds: card, cnpj, cpf, dni, email, iban, ip, nif, phone, secret, ssn`},
		{"empty data class", match + "requires: {data_classes: ['']}\n", `4:31: must not be empty`},

		{"unknown protocol", match + "endpoint: {protocol: grpc}\n", `4:26: must be http, pull, mcp or orchestrator, got "grpc"`},
		{"protocol in capitals", match + "endpoint: {protocol: HTTP, url: 'http://h/'}\n", `4:26: must be http, pull, mcp or orchestrator, got "HTTP"; did you mean "http"?`},
		{"no protocol", match + "endpoint: {url: 'http://h/'}\n", `4:15: has no protocol: write http, pull, mcp, orchestrator`},
		{"http without a url", match + "endpoint: {protocol: http}\n", `4:15: protocol http needs a url`},
		{"pull with a url", match + "endpoint: {protocol: pull, url: 'http://h/'}\n", `4:37: is for protocol http only; protocol pull has none`},
		{"mcp with a url", match + "endpoint: {protocol: mcp, action: a.b, url: 'http://h/'}\n", `4:49: is for protocol http only; protocol mcp has none`},
		{"mcp without an action", match + "endpoint: {protocol: mcp}\n", `4:15: protocol mcp needs an action: the name of an MCP server and that of its tool, such as weather.query, got ""`},
		{"action without a tool", match + "endpoint: {protocol: mcp, action: weather}\n", `4:39: protocol mcp needs an action: the name of an MCP server and that of its tool, such as weather.query, got "weather"`},
		{"action with http", match + "endpoint: {protocol: http, url: 'http://h/', action: a.b}\n", `4:58: is for protocol mcp only`},
		{"arguments with http", match + "endpoint: {protocol: http, url: 'http://h/', arguments: {a: {from: prompt}}}\n", `4:61: is for protocol mcp only`},
		{"argument as a text", match + "endpoint: {protocol: mcp, action: a.b, arguments: {a: prompt}}\n", `4:59: must be a mapping (key: value), got the text "prompt"; known here: from, match, default, type`},
		{"argument without a value", match + "endpoint: {protocol: mcp, action: a.b, arguments: {a: {type: number}}}\n", `4:59: the argument has no value: write from or default`},
		{"argument from an unknown field", match + "endpoint: {protocol: mcp, action: a.b, arguments: {a: {from: promt}}}\n", `4:66: "promt" is no part of a task; did you mean "prompt"?`},
		{"argument from an unnamed input", match + "endpoint: {protocol: mcp, action: a.b, arguments: {a: {from: inputs.}}}\n", `4:66: "inputs." is no part of a task; write prompt, subtask, intent, locale, session_id or inputs.NAME`},
		{"argument of an unknown type", match + "endpoint: {protocol: mcp, action: a.b, arguments: {a: {from: prompt, type: date}}}\n", `4:80: must be string, number, integer or boolean, got "date"`},
		{"default of another type", match + "endpoint: {protocol: mcp, action: a.b, arguments: {a: {default: ten, type: integer}}}\n", `4:69: "ten" is no integer`},
		{"invalid regular expression", match + "endpoint: {protocol: mcp, action: a.b, arguments: {a: {from: prompt, match: '('}}}\n", "4:81: is no regular expression: error parsing regexp: missing closing ): `(`"},
		{"match with several groups", match + "endpoint: {protocol: mcp, action: a.b, arguments: {a: {from: prompt, match: '(a)(b)'}}}\n", `4:81: has several groups; write (?:…) for those that are not the value`},
		{"negative timeout", match + "endpoint: {protocol: pull, timeout_ms: -1}\n", `4:44: must be from 0 to 600000, got -1`},
		{"long timeout", match + "endpoint: {protocol: pull, timeout_ms: 600001}\n", `4:44: must be from 0 to 600000, got 600001`},
		{"text for a boolean", match + "endpoint: {protocol: pull, idempotent: yes}\n", `4:44: must be true or false, got the text "yes"`},

		{"duplicate capability", match + "mcp_capabilities: ['a:b', 'a:b']\n", `4:31: "a:b" is listed twice`},
		{"empty restore list", match + "restore: []\n", `4:14: is an empty list; write none`},
		{"restore all with a kind", match + "restore: [all, email]\n", `4:14: must be all, none or a list of kinds, not several of these`},
		{"restore misspelt none", match + "restore: non\n", `4:14: "non" is not a kind of text that is masked; did you mean "none"?`},
		{"restore all in capitals", match + "restore: ALL\n", `4:14: "ALL" is not a kind of text that is masked; did you mean "all"?`},
		{"restore unknown kind", match + "restore: [email, address]\n", `4:22: "address" is not a kind of text that is masked; known kinds: card, cnpj, cpf, dni, email, iban, ip, nif, phone, secret, ssn, all, none`},
		{"restore duplicate kind", match + "restore: [ip, ip]\n", `4:19: "ip" is listed twice`},
		{"restore empty kind", match + "restore: ['']\n", `4:15: must not be empty`},
		{"restore number", match + "restore: 1\n", `4:14: must be text, got the number 1; quote it: "1"`},
		{"accept empty list", match + "accepts_data_classes: []\n", `4:27: is an empty list; write none`},
		{"accept none with a kind", match + "accepts_data_classes: [none, email]\n", `4:27: must be all, none or a list of kinds, not several of these`},
		{"accept unknown kind", match + "accepts_data_classes: e-mail\n", `4:27: "e-mail" is not a kind of text that is masked; did you mean "email"?`},
		{
			"required class not accepted", match + "requires: {data_classes: [email, ip]}\naccepts_data_classes: [email]\n",
			`4:38: "ip" is not in accepts_data_classes, so no request would be eligible; add it there`,
		},
		{"interval", match + "health: {interval_s: -1}\n", `4:26: must be from 0 to 86400, got -1`},
		{"health path", match + "health: {path: healthz}\n", `4:20: must start with /, got "healthz"`},
		{"negative bound", match + "max_in_flight: -1\n", `4:20: must be from 0 to 100000, got -1`},
		{"bound is not a number", match + "max_in_flight: many\n", `4:20: must be a whole number in decimal, got the text "many"`},
		{"priority", match + "priority: 1000001\n", `4:15: must be from -1000000 to 1000000, got 1000001`},
		{"octal priority", match + "priority: 010\n", `4:15: must be a whole number in decimal, got the number 010`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := "clients:\n  a:\n    " + strings.ReplaceAll(strings.TrimSuffix(tt.keys, "\n"), "\n", "\n    ") + "\n"
			if diff := cmp.Diff([]string{tt.want}, parseErrors(t, file)); diff != "" {
				t.Errorf("%s\nmistakes (-want +got):\n%s", file, diff)
			}
		})
	}
}

func TestURLProblem(t *testing.T) {
	const form = `must be an absolute http or https URL such as http://127.0.0.1:9101/tasks, got `
	tests := []struct{ url, want string }{
		{"http://127.0.0.1:9101/tasks", ""},
		{"https://agents.example/review?v=1", ""},
		{"http://[::1]:9101/", ""},
		{"https://h", ""},
		{"HTTP://h/", ""}, // a scheme is case-insensitive (RFC 3986 §3.1)
		{"/tasks", form + `"/tasks"`},
		{"127.0.0.1:9101/tasks", form + `"127.0.0.1:9101/tasks"`},
		{"localhost:9101", form + `"localhost:9101"`},
		{"//h/tasks", form + `"//h/tasks"`},
		{"http:///tasks", form + `"http:///tasks"`},
		{"http://:80/", form + `"http://:80/"`},
		{"http:h/tasks", form + `"http:h/tasks"`},
		{"ftp://h/", form + `"ftp://h/"`},
		{"file:///etc/passwd", form + `"file:///etc/passwd"`},
		{"unix:///run/agent.sock", form + `"unix:///run/agent.sock"`},
		{"http://h:0/", form + `"http://h:0/"`},
		{"http://h:65536/", form + `"http://h:65536/"`},
		{"http://h:port/", form + `"http://h:port/"`},
		{"http://h /", form + `"http://h /"`},
		{"http://h/\x7f", form + `"http://h/\x7f"`},
		{"http://h/%zz", form + `"http://h/%zz"`},
		{"http://user@h/", "must not contain a user name or password; tasks carry a token instead"},
		{"http://user:secret@h/", "must not contain a user name or password; tasks carry a token instead"},
		{"ftp://user:secret@h/", "must not contain a user name or password; tasks carry a token instead"},
		{"http://user:secret@h:port/", "must not contain a user name or password; tasks carry a token instead"},
		{"http://h/#part", "must not contain a fragment (#…)"},
		{"http://h/#", "must not contain a fragment (#…)"},
		{"", "protocol http needs a url"},
	}
	for _, tt := range tests {
		t.Run(tt.url, func(t *testing.T) {
			if got := urlProblem(tt.url); got != tt.want {
				t.Errorf("urlProblem(%q) = %q, want %q", tt.url, got, tt.want)
			}
		})
	}
}

func TestParse_ReportsMistakesInFile(t *testing.T) {
	const ok = "clients: {}\n"
	const agent = "clients:\n  a: {match: {intent: [x]}}\n"
	const domains = "clients:\n  a: {match: {intent: [x], domains: [d, e]}}\n"
	idRule := `is not an agent id: up to 64 of a-z, 0-9, _ and -, with a letter first`
	tests := []struct {
		name, file string
		want       []string
	}{
		{"empty", "", []string{"1:1: is empty"}},
		{"no clients", "routing: {}\n", []string{`1:1: has no clients; write "clients: {}" for a registry without agents`}},
		{"null clients", "clients:\n", []string{"1:9: there is no value here; write a mapping (key: value) or remove the key"}},
		{"clients as a list", "clients:\n- id: a\n", []string{"2:1: must be a mapping (key: value), got a list; write the name of each entry as its key"}},
		{"another version", ok + "version: 2\n", []string{"2:10: must be 1, the only version"}},
		{"version as text", ok + "version: '1'\n", []string{`2:10: must be a whole number, got the text "1"; remove the quotes`}},
		{"unknown section", ok + "rooting: {}\n", []string{`2:1: unknown key "rooting"; did you mean "routing"?`}},
		{"second document", ok + "---\n" + ok, []string{`2:1: a second document starts here; a file holds one: remove the "---"`}},
		{"duplicate agent", "clients:\n  a: {match: {intent: [x]}}\n  b: {match: {intent: [x]}}\n  a: {match: {intent: [y]}}\n", []string{`4:3: duplicate key "a"; it is also on line 2`}},
		{"anchor, alias, merge key", "clients:\n  a: &base {match: {intent: [x]}}\n  b: *base\n  c: {<<: *base}\n", []string{
			"2:6: anchors (&base) are not supported; remove it",
			"3:6: aliases (*base) are not supported; write the value out",
			"4:7: merge keys (<<) are not supported; write the keys out",
			"4:11: aliases (*base) are not supported; write the value out",
		}},
		{"tag", "clients: !!map {}\n", []string{"1:10: tags (!!map) are not supported; remove it"}},

		{"id in capitals", "clients:\n  Agent: {match: {intent: [x]}}\n", []string{`2:3: "Agent" ` + idRule}},
		{"id with a leading digit", "clients:\n  1a: {match: {intent: [x]}}\n", []string{`2:3: "1a" ` + idRule}},
		{"number as an id", "clients:\n  1: {match: {intent: [x]}}\n", []string{`2:3: a key must be text, got the number 1; quote it: "1"`}},
		{"empty id", "clients:\n  '': {match: {intent: [x]}}\n", []string{`2:3: "" ` + idRule}},
		{"id too long", "clients:\n  " + strings.Repeat("a", 65) + ": {match: {intent: [x]}}\n", []string{`2:3: "` + strings.Repeat("a", 64) + `…" ` + idRule}},
		{"null agent", "clients:\n  a:\n", []string{"2:5: there is no value here; write a mapping (key: value) or remove the key"}},

		{"threshold too high", ok + "routing: {confidence_threshold: 1.2}\n", []string{"2:33: must be from 0 to 1.1, got 1.2"}},
		{"threshold below zero", ok + "routing: {confidence_threshold: -0.1}\n", []string{"2:33: must be from 0 to 1.1, got -0.1"}},
		{"threshold in percent", ok + "routing: {confidence_threshold: 65}\n", []string{"2:33: must be from 0 to 1.1, got 65"}},
		{"threshold as text", ok + "routing: {confidence_threshold: '0.65'}\n", []string{`2:33: must be a number, got the text "0.65"; remove the quotes`}},
		{"threshold not a number", ok + "routing: {confidence_threshold: .nan}\n", []string{`2:33: must be a number in decimal, got the number .nan`}},
		{"confidence", ok + "routing: {min_confidence: 1.01}\n", []string{"2:27: must be from 0 to 1, got 1.01"}},
		{"ambiguity", ok + "routing: {ambiguity_threshold: -1}\n", []string{"2:32: must be from 0 to 1, got -1"}},
		{"topk zero", ok + "routing: {topk: 0}\n", []string{"2:17: must be from 1 to 8, got 0"}},
		{"topk too large", ok + "routing: {topk: 9}\n", []string{"2:17: must be from 1 to 8, got 9"}},
		{"unknown conflict policy", ok + "routing: {conflict_policy: first}\n", []string{`2:28: must be prefer_specific, got "first"`}},
		{"unknown fallback policy", ok + "fallback: {policy: D}\n", []string{`2:20: must be auto, A (answer), B (refuse) or C (ticket), got "D"`}},
		{"fallback policy in lower case", ok + "fallback: {policy: b}\n", []string{`2:20: must be auto, A (answer), B (refuse) or C (ticket), got "b"`}},
		{"fallback tokens", ok + "fallback: {max_tokens: 0}\n", []string{"2:24: must be from 1 to 100000, got 0"}},
		{"invalid language", ok + "fallback: {language: português}\n", []string{`2:22: must be auto or a language tag such as pt-BR, got "português"`}},
		{"unquoted language no", ok + "fallback: {language: no}\n", nil},

		{"grant for an invalid id", ok + "grants:\n  Bad: {intents: [x], domains: []}\n", []string{`3:3: "Bad" ` + idRule}},
		{"grant without an intent", ok + "grants:\n  a: {domains: [d]}\n", []string{"3:6: grants no intent; list at least one"}},
		{"grant for the wildcard intent", ok + "grants:\n  a: {intents: ['*']}\n", []string{`3:17: "*" means any domain; an intent must be named`}},
		{"grant with a wrong domain", ok + "grants:\n  a: {intents: [x], domains: [unknown]}\n", []string{`3:31: "unknown" is reserved for requests that match no agent`}},
		{"grant with a wrong priority", ok + "grants:\n  a: {intents: [x], priority: -1000001}\n", []string{"3:31: must be from -1000000 to 1000000, got -1000001"}},
		{"grant with a wrong requirement", ok + "grants:\n  a: {intents: [x], requires: {scopes: ['']}}\n", []string{"3:41: must not be empty"}},

		{"aliases", domains + "domain_aliases: {d: [spark, delta lake], e: [emr]}\n", nil},
		{"aliases of an undeclared domain", "clients:\n  a: {match: {intent: [x], domains: [python]}}\n" + "domain_aliases:\n  pyton: [snake]\n  other: [x]\n", []string{
			`4:3: "pyton" is not a domain of this registry; did you mean "python"?`, `5:3: "other" is not a domain of this registry`,
		}},
		{"aliases beside a misspelt match", "clients:\n  a: {matchs: {intent: [x], domains: [python]}}\ndomain_aliases: {python: [snake]}\n", []string{`2:7: unknown key "matchs"; did you mean "match"?`}},
		{"aliases beside misspelt domains", "clients:\n  a: {match: {intent: [x], domain: [python]}}\ndomain_aliases: {python: [snake]}\n", []string{`2:28: unknown key "domain"; did you mean "domains"?`}},
		{"aliases beside domains that are no list", "clients:\n  a: {match: {intent: [x], domains: python}}\ndomain_aliases: {python: [snake]}\n", []string{`2:37: must be a list, got the text "python"; write [python]`}},
		{"aliases beside misspelt clients", "client:\n  a: {match: {intent: [x], domains: [python]}}\ndomain_aliases: {python: [snake]}\n", []string{`1:1: unknown key "client"; did you mean "clients"?`}},
		{"aliases beside misspelt domains of a grant", ok + "grants: {g: {intents: [x], domain: [python]}}\ndomain_aliases: {python: [snake]}\n", []string{`2:28: unknown key "domain"; did you mean "domains"?`}},
		{"aliases of an undeclared domain beside another mistake", "clients:\n  a: {match: {intent: [x], domains: [python]}, priorty: 1}\ndomain_aliases: {java: [jvm]}\n", []string{
			`2:48: unknown key "priorty"; did you mean "priority"?`, `3:18: "java" is not a domain of this registry`,
		}},
		{"aliases of the wildcard domain", domains + "domain_aliases: {'*': [spark]}\n", []string{`3:18: "*" is not a domain of this registry`}},
		{"empty alias list", domains + "domain_aliases: {d: []}\n", []string{"3:21: lists no alias; list at least one, or leave the domain out"}},
		{"alias that is a domain", domains + "domain_aliases: {d: [E, spark]}\n", []string{`3:22: "E" is the domain e itself; remove the alias`}},
		{"duplicate alias", domains + "domain_aliases: {d: [spark, spark]}\n", []string{`3:29: "spark" is listed twice`}},
		{"alias without letters", domains + "domain_aliases: {d: ['--', '']}\n", []string{
			`3:22: "--" contains no letter or digit, so no text matches it`, "3:28: must not be empty",
		}},
		{"number as an alias", domains + "domain_aliases: {d: [7]}\n", []string{`3:22: must be text, got the number 7; quote it: "7"`}},

		{"both keys of the agents", "clients: {}\nagents: {}\n", []string{`2:1: "agents" is another name for "clients", which is at 1:1; keep one of them`}},
		{"both keys of the threshold", ok + "routing:\n  score_threshold: 0.5\n  confidence_threshold: 0.6\n", []string{`4:3: "confidence_threshold" is another name for "score_threshold", which is at 3:3; keep one of them`}},
		{"synonyms", "agents:\n  a: {match: {intent: [x]}, priority: 9999999}\nrouting: {score_threshold: 2}\n", []string{
			"2:39: must be from -1000000 to 1000000, got 9999999", "3:28: must be from 0 to 1.1, got 2",
		}},

		{"several mistakes", "version: 3\nclients:\n  A: {match: {intent: [x, x]}, priorty: 1}\n  b: {id: c, match: {intent: []}}\nrouting: {topk: 99, conflict: x}\nfallback: {policy: X}\n", []string{
			"1:10: must be 1, the only version",
			`3:3: "A" ` + idRule,
			`3:27: "x" is listed twice`,
			`3:32: unknown key "priorty"; did you mean "priority"?`,
			`4:11: must be the key above it, "b", got "c"; or leave it out`,
			`4:30: declares no intent; list at least one under match.intent`,
			`5:17: must be from 1 to 8, got 99`,
			`5:21: unknown key "conflict"; known here: confidence_threshold, min_confidence, ambiguity_threshold, topk, conflict_policy, auto_split_if_conflict, implied_domains`,
			`6:20: must be auto, A (answer), B (refuse) or C (ticket), got "X"`,
		}},
		{"fine", agent, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, parseErrors(t, tt.file)); diff != "" {
				t.Errorf("%s\nmistakes (-want +got):\n%s", tt.file, diff)
			}
		})
	}
}

func TestParse_LimitsErrors(t *testing.T) {
	var b strings.Builder
	b.WriteString("clients:\n")
	for i := range 3000 {
		fmt.Fprintf(&b, "  a%d: {match: {intent: [x]}, priority: 9999999}\n", i)
	}
	got := parseErrors(t, b.String())
	if len(got) != strictyaml.MaxErrors+1 {
		t.Fatalf("got %d errors, want %d", len(got), strictyaml.MaxErrors+1)
	}
	if want := "2980 more"; !strings.Contains(got[strictyaml.MaxErrors], want) {
		t.Errorf("got last error %q, want … and %s", got[strictyaml.MaxErrors], want)
	}
}

// Names in other languages are accepted.
func TestLabelProblem_AcceptsOtherLanguages(t *testing.T) {
	for _, name := range []string{"code_review", "c++", "C#", ".NET", "kb internal", "análise de custo", "コードレビュー", "a/b", "no", "1e3x", "x*", strings.Repeat("é", 64)} {
		if got := intentProblem(name); got != "" {
			t.Errorf("intent %q: got %q, want it accepted", name, got)
		}
		if got := domainProblem(name); got != "" {
			t.Errorf("domain %q: got %q, want it accepted", name, got)
		}
	}
	if got := domainProblem(contract.AnyDomain); got != "" {
		t.Errorf("domain *: got %q, want it accepted", got)
	}
}

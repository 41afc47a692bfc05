package mcpfile_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

var withoutLines = cmpopts.IgnoreFields(mcpfile.Server{}, "Line")

// The same servers in every format give the same values.
func TestLoad_FormatsAreEquivalent(t *testing.T) {
	want := load(t, "testdata/same_servers.json")
	if len(want.Servers) != 4 || want.Format != "servers" || want.Warnings != nil {
		t.Fatalf("got %+v, want 4 servers without a warning", want)
	}
	for format, warnings := range map[string][]string{
		"plugins": nil, "map": nil, "bare_map": nil, "vscode": nil,
		"mcpServers": {`testdata/same_mcpServers.json:3:140: "autoApprove" is ignored`},
	} {
		got := load(t, "testdata/same_"+format+".json")
		if want := strings.TrimPrefix(format, "bare_"); got.Format != want {
			t.Errorf("%s: got format %s, want %s", format, got.Format, want)
		}
		if diff := cmp.Diff(want.Servers, got.Servers, withoutLines); diff != "" {
			t.Errorf("%s: servers (-servers +%s):\n%s", format, format, diff)
		}
		if diff := cmp.Diff(warnings, got.Warnings); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", format, diff)
		}
	}
}

// The examples in the specifications of the formats are valid.
func TestLoad_Examples(t *testing.T) {
	plugins := load(t, "testdata/plugins_example.json")
	want := []string{`testdata/plugins_example.json:7:15: the credential of server "weather" is sent in clear text: use https`}
	if diff := cmp.Diff(want, plugins.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	weather := plugins.Servers
	if len(weather) != 1 || weather[0].Transport != mcpfile.REST || weather[0].Actions[0].Name != "query" || weather[0].Actions[0].Retry.MaxMS != 2000 {
		t.Errorf("got %+v, want the server weather with the action query", weather)
	}
	example := load(t, "testdata/servers_example.json")
	servers := []mcpfile.Server{
		{ID: "mcp-google-earth-engine", Transport: mcpfile.SSE, URL: "https://mcp.google.com/gee", Capabilities: []string{"raster:dnbr", "raster:ndvi"}},
		{
			ID: "mcp-irwin", Transport: mcpfile.Stdio, Command: []string{"python", "-m", "ranger.mcp.irwin"},
			Env: map[string]string{"IRWIN_API_KEY": "..."}, Capabilities: []string{"incident:read", "incident:query"},
		},
	}
	if diff := cmp.Diff(servers, example.Servers, withoutLines); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	warnings := []string{"testdata/servers_example.json:10:33: IRWIN_API_KEY contains a literal credential: write ${IRWIN_API_KEY} and set the environment variable"}
	if diff := cmp.Diff(warnings, example.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestParse_Errors(t *testing.T) {
	tests := []struct {
		name, file string
		want       []string
	}{
		{"empty", ``, []string{"m.json:1:1: the file is not JSON: it is empty"}},
		{"not JSON", "{\n  \"servers\": [}\n", []string{"m.json:2:15: the file is not JSON: invalid character '}' at start of value"}},
		{"invalid JSON further on", "{\n  \"servers\": [\n    {\"id\": \"a\",\n     /* b */ x}]}\n", []string{"m.json:4:14: the file is not JSON: invalid character 'x' at start of string (expecting '\"')"}},
		{"truncated", "{\n  \"servers\": [\n", []string{"m.json:3:1: the file is not JSON: the text ends too early"}},
		{"array", `[]`, []string{"m.json:1:1: the file must be an object, got an array"}},
		{"other file", `{"name": {"a": 1}, "version": {}}`, []string{
			`m.json:1:1: this is no registry of MCP servers; expected one of these: {"servers": [...]}, {"servers": {...}}, {"mcpServers": {...}}, {"mcp": {...}}, {"plugins": [...]}`,
		}},
		{"two formats", `{"servers": [], "mcpServers": {}}`, []string{"m.json:1:31: servers and mcpServers are different formats: use one of them"}},
		{"unsupported version", `{"servers": [], "version": "2.0"}`, []string{`m.json:1:28: version "2.0" is not supported; use 1.0`}},
		{"unknown key", `{"servers": [{"id": "a", "comand": "x", "url": "http://h/"}]}`, []string{`m.json:1:36: unknown key "comand"; did you mean "command"?`}},
		{"unknown key like command", `{"servers": [{"id": "a", "comand": "x", "args": ["y"]}]}`, []string{`m.json:1:36: unknown key "comand"; did you mean "command"?`}},
		{"unknown key like command, stdio", `{"servers": [{"id": "a", "type": "stdio", "comand": "x"}]}`, []string{`m.json:1:53: unknown key "comand"; did you mean "command"?`}},
		{"unknown key like command, mcpServers", `{"mcpServers": {"a": {"comand": "x"}}}`, []string{`m.json:1:33: unknown key "comand"; did you mean "command"?`}},
		{"unknown key like url", `{"servers": [{"id": "a", "type": "http", "ulr": "http://h/"}]}`, []string{`m.json:1:49: unknown key "ulr"; did you mean "url"?`}},
		{"unknown key and no url", `{"servers": [{"id": "a", "hedaers": {}}]}`, []string{`m.json:1:14: server "a" needs a command or a url`, `m.json:1:37: unknown key "hedaers"; did you mean "headers"?`}},
		{"unknown key of an action", `{"plugins": [{"id": "a", "endpoint": "http://h/", "actions": [{"name": "a.b", "timeout": 1, "zzzzzz": 1}]}]}`, []string{
			`m.json:1:90: unknown key "timeout"; did you mean "timeout_ms"?`,
			`m.json:1:103: unknown key "zzzzzz"; known here: name, description, input_schema, output_schema, timeout_ms, retry, rate_limit`,
		}},
		{"duplicate key", "{\"mcp\": {\n\"a\": {\"type\": \"remote\", \"url\": \"http://h/\"},\n\"a\": {}}}", []string{`m.json:2:6: a name "a" appears more than once`}},
		{"headers", `{"servers": [{"id": "a", "url": "http://h/", "headers": {"": "x", "A B": "x", "C": "a\nb", "D": "${D}\t"}, "auth": {"type": "header", "header": "X:", "env": "E"}}]}`, []string{
			`m.json:1:62: "" is not the name of a header`, `m.json:1:74: "A B" is not the name of a header`,
			`m.json:1:84: the value of the header C contains a control character`, `m.json:1:145: "X:" is not the name of a header`,
		}},
		{"headers of the connection", fmt.Sprintf("{\"servers\": [{\"id\": \"a\", \"url\": \"http://h/\", \"headers\": {\n\"HOST\": \"x\",\n\"content-Length\": \"1\",\n\"Connection\": \"close\",\n"+
			"\"Transfer-Encoding\": \"chunked\",\n\"Te\": \"trailers\",\n\"Upgrade\": \"h2c\",\n\"%s\": \"\",\n\"Y\": \"%s\",\n\"Z\": \"%[2]s\"}, \"auth\": {\"type\": \"header\",\n\"header\": \"Trailer\", \"env\": \"E\"}}]}",
			strings.Repeat("N", 129), strings.Repeat("v", 8193)), []string{
			"m.json:2:9: the header HOST is set by the connection: remove it", "m.json:3:19: the header content-Length is set by the connection: remove it",
			"m.json:4:15: the header Connection is set by the connection: remove it", "m.json:5:22: the header Transfer-Encoding is set by the connection: remove it",
			"m.json:6:7: the header Te is set by the connection: remove it", "m.json:7:12: the header Upgrade is set by the connection: remove it",
			"m.json:8:134: the name of a header has 129 bytes, at most 128",
			"m.json:9:6: the value of the header Y has 8193 bytes, at most 8192", "m.json:10:6: the value of the header Z has 8193 bytes, at most 8192",
			"m.json:11:11: the header Trailer is set by the connection: remove it",
		}},
		{"duplicate id on one line", `{"servers": [{"id": "a", "url": "http://h/"}, {"id": "a", "url": "http://i/"}]}`, []string{`m.json:1:47: server "a" is already declared in line 1`}},
		{"duplicate id", "{\"servers\": [\n{\"id\": \"a\", \"url\": \"http://h/\"},\n{\"id\": \"a\", \"url\": \"http://i/\"}]}", []string{`m.json:3:1: server "a" is already declared in line 2`}},
		{"ambiguous action", `{"plugins": [{"id": "a.b", "endpoint": "http://h/", "actions": [{"name": "c"}]},
{"id": "a", "endpoint": "http://h/", "actions": [{"name": "b.c"}]}]}`, []string{
			`m.json:2:1: action "a.b.c" is declared by the servers "a.b" and "a": rename one of them`,
		}},
		{"no id", `{"servers": [{"url": "http://h/"}]}`, []string{"m.json:1:14: the server has no id"}},
		{"control character in an id", `{"mcpServers": {"a\u0007": {"url": "http://h/"}}}`, []string{`m.json:1:28: the id "a\a" must not contain control characters, or blanks at its ends`}},
		{"prompts", `{"servers": [{"id": "a", "url": "http://h/", "prompts": "no"}]}`, []string{`m.json:1:57: prompts must be true or false, got a string`}},
		{"prefix", `{"servers": [{"id": "a", "url": "http://h/", "tools": {"prefix": "a.b "}}]}`, []string{`m.json:1:66: prefix must have at most 32 letters, digits, underscores and hyphens`}},
		{"no command", `{"servers": [{"id": "a", "transport": "stdio"}]}`, []string{`m.json:1:14: server "a" needs a command`}},
		{"no url", `{"servers": [{"id": "a", "transport": "sse"}]}`, []string{`m.json:1:14: server "a" needs a url`}},
		{"no command and no url", `{"servers": [{"id": "a"}]}`, []string{`m.json:1:14: server "a" needs a command or a url`}},
		{"remote server without a url", `{"servers": [{"id": "a", "transport": "remote"}]}`, []string{`m.json:1:14: server "a" needs a url`}},
		{"command and url", `{"servers": [{"id": "a", "command": "x", "url": "http://h/"}]}`, []string{`m.json:1:14: server "a" has both a command and a url: remove one of them`}},
		{"scheme", `{"servers": [{"id": "a", "url": "ftp://h/"}]}`, []string{"m.json:1:33: url must be an absolute http or https URL"}},
		{"a transport", `{"servers": [{"id": "a", "transport": "grpc", "url": "http://h/"}]}`, []string{
			`m.json:1:39: transport "grpc" is not supported; known are stdio, http, streamable-http, sse, rest, local, remote`,
		}},
		{"synonyms", `{"servers": [{"id": "a", "url": "http://h/", "endpoint": "http://i/"}]}`, []string{"m.json:1:58: url and endpoint mean the same: remove one of them"}},
		{"types", `{"servers": [{"id": 1, "command": [2], "env": {"A": null}}]}`, []string{
			"m.json:1:21: id must be a string, got a number", `m.json:1:14: the id "" must have 1 to 128 bytes`,
			"m.json:1:36: 0 must be a string, got a number", "m.json:1:35: command must name a program", "m.json:1:53: A must be a string, got null",
		}},
		{"numbers", `{"servers": [{"id": "a", "url": "http://h/", "timeout": -1, "retry": {"retries": 99, "backoff": "none"}}]}`, []string{
			"m.json:1:57: timeout is -1: it must be from 0 to 86400000 milliseconds",
			"m.json:1:82: retries is 99: it must be from 0 to 10",
			`m.json:1:97: backoff "none" is not supported; known are exponential and fixed`,
		}},
		{"a credential", `{"plugins": [{"id": "a", "endpoint": "http://h/", "auth": {"type": "basic"}, "actions": [{"name": "x"}]}]}`, []string{
			`m.json:1:68: type "basic" is not supported; known are bearer and header`,
		}},
		{"no actions", `{"plugins": [{"id": "a", "endpoint": "http://h/"}]}`, []string{`m.json:1:14: server "a" needs actions, because its transport cannot list them`}},
		{"policies", `{"servers": [{"id": "a", "url": "http://h/", "start": "soon", "rate_limit": {"burst": -1}, "breaker": {"failures": -1, "open": 1},
"health": {"interval_ms": -1}, "redaction": [{"key": "x", "path": "/y"}, {"pattern": "("}]}]}`, []string{
			`m.json:1:55: start "soon" is not supported; known are eager and lazy`,
			"m.json:1:77: rate_limit needs rps, a number of calls per second from above 0 to 1000000",
			"m.json:1:87: burst is -1: it must be from 0 to 1000000",
			"m.json:1:116: failures is -1: it must not be negative",
			`m.json:1:128: unknown key "open"; known here: failures, open_ms`,
			"m.json:2:27: interval_ms is -1: it must be from 0 to 86400000 milliseconds",
			"m.json:2:46: a rule needs one of path, key, pattern and kinds",
			"m.json:2:74: pattern: error parsing regexp: missing closing ): `(`",
		}},
		{"a schema", `{"plugins": [{"id": "a", "endpoint": "http://h/", "actions": [{"name": "x", "input_schema": {"type": "text"}}]}]}`, []string{
			"m.json:1:93: input_schema is not a valid JSON Schema: /type value must be one of 'array', 'boolean', 'integer', 'null', 'number', 'object', 'string'; /type got string, want array",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := mcpfile.Parse("m.json", []byte(tt.file))
			var got []string
			if errs, ok := errors.AsType[strictyaml.Errors](err); ok {
				for _, e := range errs {
					got = append(got, e.Error())
				}
			}
			sortLines := cmpopts.SortSlices(strings.Compare)
			if diff := cmp.Diff(tt.want, got, sortLines); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParse_Warnings(t *testing.T) {
	f, err := mcpfile.Parse("m.json", []byte(`{
  "mcpServers": {
    "a": {"command": "npx -y server", "timeout": 60, "env": {"LEVEL": "debug"}},
    "c": {"url": "https://i/", "tools": {"include": ["x"], "prefix": "c__"}},
    "b": {"url": "https://u:p@h/", "headers": {"Authorization": "Bearer x", "X-Key": "${KEY}"}, "envFile": ".env", "urls": 1}
  },
  "theme": "dark"
}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`m.json:3:10: server "a" has a timeout of 60 milliseconds; if seconds are meant, write 60000`,
		"m.json:3:22: command is one program without a shell: move its arguments to args",
		`m.json:5:10: the URL of server "b" contains a literal credential`,
		"m.json:5:65: Authorization contains a literal credential: write ${AUTHORIZATION} and set the environment variable",
		`m.json:5:108: "envFile" is ignored`,
		`m.json:5:124: "urls" is ignored`,
		`m.json:7:12: "theme" is ignored`,
	}
	if diff := cmp.Diff(want, f.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// Tools that are not in the file may have the same name, which is only known after connecting.
func TestParse_WarnsOfPossiblyAmbiguousNames(t *testing.T) {
	f, err := mcpfile.Parse("m.json", []byte(`{"servers": [
{"id": "a.b", "url": "http://h/"},
{"id": "a", "url": "http://i/"},
{"id": "a.b.c", "url": "http://j/", "actions": [{"name": "d"}]},
{"id": "x", "url": "http://k/", "actions": [{"name": "y.z"}]},
{"id": "x.w", "url": "http://l/"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`m.json:3:1: tools of the servers "a.b" and "a" may have the same name: rename one of them`,
		`m.json:4:1: tools of the servers "a.b" and "a.b.c" may have the same name: rename one of them`,
		`m.json:4:1: tools of the servers "a" and "a.b.c" may have the same name: rename one of them`,
	}
	if diff := cmp.Diff(want, f.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// The public description of a server contains no value that can be a secret.
func TestServer_Public(t *testing.T) {
	f, err := mcpfile.Parse("m.json", []byte(`{"mcp": {
"local": {"type": "local", "command": ["run", "--token=canary"], "environment": {"A": "canary"}, "timeout": 5000},
"remote": {"type": "remote", "url": "https://canary:canary@h.example:8443/mcp?key=canary#canary", "headers": {"X": "canary"}, "enabled": false}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []mcpfile.Public{
		{Type: "local", Program: "run", Enabled: true, Timeout: 5000},
		{Type: "remote", URL: "https://h.example:8443/mcp"},
	}
	if diff := cmp.Diff(want, []mcpfile.Public{f.Servers[0].Public(), f.Servers[1].Public()}); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}

// A map may contain a server whose name is the key of another format.
func TestParse_ServerNamedLikeFormat(t *testing.T) {
	for _, name := range []string{"mcp", "servers"} {
		f, err := mcpfile.Parse("m.json", []byte(`{"`+name+`": {"type": "remote", "url": "http://h/"}}`))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if len(f.Servers) != 1 || f.Servers[0].ID != name {
			t.Errorf("%s: got %+v, want one server with this id", name, f.Servers)
		}
	}
}

func TestExpand(t *testing.T) {
	s := mcpfile.Server{
		ID: "a", Command: []string{"run", "${DIR}/x", "$DIR", "${env:TOKEN}"},
		Env: map[string]string{"A": "${NONE:-default}", "B": "${TOKEN}-${HOME}"}, Headers: map[string]string{"X-Key": "literal-key"},
		Auth: &mcpfile.Auth{Type: "bearer", Env: "AUTH"},
	}
	lookup := func(name string) (string, bool) {
		value, ok := map[string]string{"DIR": "/d", "TOKEN": "secret-1", "HOME": "/home/someone", "AUTH": "secret-2"}[name]
		return value, ok
	}
	got, err := s.Expand(lookup)
	if err != nil {
		t.Fatal(err)
	}
	want := &mcpfile.Expanded{Server: s, Credential: "secret-2"}
	want.Command = []string{"run", "/d/x", "$DIR", "secret-1"}
	want.Env = map[string]string{"A": "default", "B": "secret-1-/home/someone"}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(mcpfile.Expanded{}, "Secrets")); diff != "" {
		t.Errorf("expanded (-want +got):\n%s", diff)
	}
	if text := got.Hide("secret-1 secret-2 literal-key /home/someone"); text != "<redacted> <redacted> <redacted> /home/someone" {
		t.Errorf("got %q, want the credentials redacted and the directory unchanged", text)
	}
	if s.Env["B"] != "${TOKEN}-${HOME}" || s.Command[1] != "${DIR}/x" {
		t.Errorf("got %+v, want the declaration unchanged", s)
	}
}

func TestExpand_ReportsUnsetVariables(t *testing.T) {
	s := mcpfile.Server{ID: "a", URL: "http://${HOST}/${input:id}", Headers: map[string]string{"X": "${HOST}"}, Auth: &mcpfile.Auth{Type: "bearer", Env: "EMPTY"}}
	_, err := s.Expand(func(name string) (string, bool) { return "", name == "EMPTY" })
	if want := "environment variables HOST, input:id, EMPTY are not set"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func load(t *testing.T, path string) *mcpfile.File {
	t.Helper()
	f, err := mcpfile.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// FuzzParse checks that accepted servers stay the same when they are encoded in the format servers
// and parsed again.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"same_servers", "same_plugins", "same_map", "same_bare_map", "same_mcpServers", "same_vscode", "plugins_example", "servers_example"} {
		data, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := mcpfile.Parse("m.json", data)
		if err != nil {
			if _, ok := errors.AsType[strictyaml.Errors](err); !ok {
				t.Fatalf("got %T, want strictyaml.Errors", err)
			}
			return
		}
		text, err := strictjson.Marshal(map[string]any{"version": "1.0", "servers": first.Servers})
		if err != nil {
			t.Fatal(err)
		}
		second, err := mcpfile.Parse("m.json", text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(first.Servers, second.Servers, withoutLines, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("servers (-first +second):\n%s", diff)
		}
	})
}

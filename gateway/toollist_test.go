//go:build unix

package gateway_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/testkit"
)

// invalidTools is a result of tools/list with one valid tool, and others that are no tools of
// the protocol.
var invalidTools = `{"tools":[` +
	`{"name":"description","description":7,"inputSchema":{"type":"object"}},` +
	`{"name":"hints","annotations":{"readOnlyHint":"yes"},"inputSchema":{"type":"object"}},` +
	`{"name":"good","inputSchema":{"type":"object"}},` +
	`{"name":"deep_result","inputSchema":{"type":"object"}},` +
	`{"name":"no_json","inputSchema":{"type":"object"}},` +
	`{"name":"no_utf8","inputSchema":{"type":"object"}},` +
	`{"name":"icons","icons":[{"src":"a:b","sizes":"any"}],"inputSchema":{"type":"object"}},` +
	`{"name":"infinite","inputSchema":{"maximum":1e400}},` +
	`{"name":7,"inputSchema":{"type":"object"}},` +
	`{"name":"deep","inputSchema":` + deepValue + `},` +
	`{"name":"","inputSchema":{"type":"object"}},` +
	`{"name":"line\u000abreak","inputSchema":{"type":"object"}},` +
	`{"name":"` + longName + `","inputSchema":{"type":"object"}},` +
	`"text"]}`

// invalidContents are results of lists with valid entries and others that are none of the protocol.
var invalidContents = map[string]string{
	"prompts/list": `{"prompts":[{"name":"good"},{"name":"title","title":7},{"name":7},"text",{"name":""},{"name":"line\u000abreak"},` +
		`{"name":"arguments","arguments":{}},{"name":"deep","_meta":` + deepValue + `}]}`,
	"resources/list": `{"resources":[{"uri":"lib://size","name":"size","size":"large"},{"uri":"lib://good","name":"good"},` +
		`{"uri":7,"name":"no URI"},{"name":"without a URI"}]}`,
	"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"lib://{good}","name":"good"},{"uriTemplate":"lib://{hints}","name":"hints","annotations":[]}]}`,
}

// deepValue nests deeper than the library decodes.
var deepValue = strings.Repeat(`{"not":`, 1100) + `{}` + strings.Repeat(`}`, 1100)

// longName is longer than the name of an action may be.
const longName = fortyBytes + fortyBytes + fortyBytes + fortyBytes + fortyBytes + fortyBytes + fortyBytes + fortyBytes + fortyBytes + fortyBytes

const fortyBytes = "0123456789012345678901234567890123456789"

// answerInvalidTools returns the response of a server with invalidTools, "" for a
// notification.
func answerInvalidTools(message []byte) string {
	var request struct {
		ID     json.RawMessage
		Method string
	}
	if json.Unmarshal(message, &request) != nil || request.ID == nil {
		return ""
	}
	answer := `"error":{"code":-32601,"message":"not found"}`
	switch request.Method {
	case "initialize":
		answer = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"invalid","version":"1"}}`
	case "tools/list":
		answer = `"result":` + invalidTools
	case "tools/call":
		answer = `"result":{"content":[{"type":"text","text":"called"}]}`
		for name, result := range map[string]string{
			"deep_result": `{"content":[],"structuredContent":` + deepValue + `}`,
			"no_json":     `{"content":[],"structuredContent":{"a":NaN}}`,
			"no_utf8":     `{"content":[{"type":"text","text":"a` + "\xff" + `\ud800"}]}`,
		} {
			if strings.Contains(string(message), `"`+name+`"`) {
				answer = `"result":` + result
			}
		}
	case "prompts/list", "resources/list", "resources/templates/list":
		answer = `"result":` + invalidContents[request.Method]
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, request.ID, answer)
}

// serveInvalidTools is the server over stdio.
func serveInvalidTools(in io.Reader, out io.Writer) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if answer := answerInvalidTools(lines.Bytes()); answer != "" {
			fmt.Fprintln(out, answer)
		}
	}
}

// A server may change all of its tools several times a second, so the log contains the names of
// the first ones and the number of the others.
func TestGateway_LogsFewOfManyTools(t *testing.T) {
	tools := make([]string, 50)
	for i := range tools {
		tools[i] = fmt.Sprintf(`{"name":"tool\u000a%d","inputSchema":{"type":"object"}}`, i)
	}
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer := strings.Replace(answerInvalidTools(body), invalidTools, `{"tools":[`+strings.Join(tools, ",")+`]}`, 1)
		if answer == "" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answer)
	}))
	log := &testkit.LogBuffer{}
	g := startGateway(t, gateway.Config{Client: mcpclient.Config{Logger: log.Logger()}}, mcpfile.Server{ID: "s", Transport: mcpfile.HTTP, URL: server.URL})
	if info := g.Servers()[0]; len(info.Tools) != len(tools) {
		t.Fatalf("server %s %q: got %d tools, want %d", info.Status, info.Error, len(info.Tools), len(tools))
	}
	got := log.String()
	if n := strings.Count(got, "a tool cannot be called"); n != 5 || !strings.Contains(got, "further tools cannot be called") || !strings.Contains(got, "45") {
		t.Errorf("got %d lines about tools in log %q, want 5, and one about 45 further ones", n, got)
	}
}

// TestGateway_LeavesOutInvalidEntries lists tools, prompts, resources and templates that the library
// cannot decode. The other tools can be called, and the other entries are listed.
func TestGateway_LeavesOutInvalidEntries(t *testing.T) {
	reply := func(mediaType, format string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			answer := answerInvalidTools(body)
			if answer == "" {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			w.Header().Set("Content-Type", mediaType)
			fmt.Fprintf(w, format, answer)
		})
	}
	answers := make(chan string, 100)
	events := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusAccepted)
			answers <- answerInvalidTools(body)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: endpoint\ndata: /messages\n\n")
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				return
			case answer := <-answers:
				if answer != "" {
					fmt.Fprintf(w, "event: message\ndata: %s\n\n", answer)
				}
			}
		}
	})
	for name, server := range map[string]mcpfile.Server{
		"stdio":        {Transport: mcpfile.Stdio, Command: []string{os.Args[0], "invalid", "-"}},
		"JSON":         {Transport: mcpfile.HTTP, URL: serve(t, reply("application/json", "%s")).URL},
		"event stream": {Transport: mcpfile.HTTP, URL: serve(t, reply("text/event-stream", ": comment\nevent: message\ndata: %s\n\n")).URL},
		"SSE":          {Transport: mcpfile.SSE, URL: serve(t, events).URL},
	} {
		t.Run(name, func(t *testing.T) {
			server.ID = "s"
			log := &testkit.LogBuffer{}
			g := startGateway(t, gateway.Config{Client: mcpclient.Config{Logger: log.Logger()}}, server)
			info := g.Servers()[0]
			got := map[string]string{}
			for _, tool := range info.Tools {
				got[tool.Action] = tool.Error
			}
			want := map[string]string{
				"s.deep":        "its input schema nests deeper than 64 levels",
				"s.deep_result": "",
				"s.no_json":     "",
				"s.no_utf8":     "",
				"s.description": "its description must be a string, got a number",
				"s.good":        "",
				"s.hints":       "its annotations/readOnlyHint must be true or false, got a string",
				"s.icons":       "its icons/0/sizes must be an array, got a string",
				"s.infinite":    "its inputSchema/maximum is out of range: 1e400",
				"s.tools/8":     "its name must be a string, got a number",
				"s.tools/13":    "must be an object, got a string",

				"s.":            "its name is empty",
				"s.line\nbreak": "its name contains a control character",

				"s." + longName[:100] + "…": "its name is longer than 400 characters with that of the server",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("server %s %q: tools and their errors (-want +got):\n%s", info.Status, info.Error, diff)
			}
			var ids []string
			for _, e := range slices.Concat(info.Prompts, info.Resources, info.ResourceTemplates) {
				ids = append(ids, e.ID)
			}
			if diff := cmp.Diff([]string{"good", "deep", "lib://good", "lib://{good}"}, ids); diff != "" {
				t.Errorf("prompts, resources and templates (-want +got):\n%s", diff)
			}
			for _, line := range []string{
				`"entry":"title","error":"its title must be a string, got a number"`, `"entry":"prompts/2","error":"its name must be a string, got a number"`,
				`"entry":"prompts/3","error":"must be an object, got a string"`, `"entry":"","error":"its name or URI is empty"`,
				`"entry":"line\nbreak","error":"its name or URI contains a control character"`, `"list":"prompts","entries":1`,
				`"entry":"lib://size","error":"its size must be a whole number, got a string"`, `"entry":"no URI","error":"its uri must be a string, got a number"`,
				`"entry":"without a URI","error":"its name or URI is empty"`, `"entry":"lib://{hints}","error":"its annotations must be an object, got an array"`,
			} {
				if strings.Count(log.String(), line) != 1 {
					t.Errorf("got log %s, want %s once", log.String(), line)
				}
			}
			for _, action := range []string{"s.deep_result", "s.no_json"} {
				if _, err := g.Invoke(t.Context(), contract.Action{Action: action, Input: json.RawMessage(`{}`)}); codeOf(err) != contract.ActionBadResult {
					t.Errorf("%s: got error %v, want %s", action, err, contract.ActionBadResult)
				}
			}
			result, err := g.Invoke(t.Context(), contract.Action{Action: "s.no_utf8", Input: json.RawMessage(`{}`)})
			if want := "\"a\uFFFD\uFFFD\""; err != nil || string(result.Content) != want {
				t.Errorf("a result with invalid UTF-8: got %+v, %v, want %s", result, err, want)
			}
			if _, err := g.Invoke(t.Context(), contract.Action{Action: "s.good", Input: json.RawMessage(`{}`)}); err != nil {
				t.Errorf("the valid tool: got error %v, want a result", err)
			}
			if _, err := g.Invoke(t.Context(), contract.Action{Action: "s.hints", Input: json.RawMessage(`{}`)}); codeOf(err) != contract.ActionUnavailable {
				t.Errorf("an invalid tool: got error %v, want %s", err, contract.ActionUnavailable)
			}
			if !strings.Contains(log.String(), "s.hints") {
				t.Errorf("got log %s, want the tools that cannot be called", log.String())
			}
		})
	}
}

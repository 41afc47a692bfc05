// Package mcpsample contains two small MCP servers, for the first steps with the gateway
// and for tests: weather answers with a forecast that depends on the name of the place
// only, and system describes the machine.
package mcpsample

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"runtime"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// Names returns the names of the servers.
func Names() []string { return []string{"system", "weather"} }

// New returns a server, or an error if there is none with the name.
func New(name, version string) (*mcp.Server, error) {
	server := mcp.NewServer(&mcp.Implementation{Name: "caprouter-sample-" + name, Version: version}, nil)
	switch name {
	case "weather":
		mcp.AddTool(server, &mcp.Tool{
			Name: "query", Description: "Weather forecast for a place (a made-up one, the same for each call)",
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
		}, queryWeather)
	case "system":
		mcp.AddTool(server, &mcp.Tool{
			Name: "info", Description: "Operating system, architecture, processors and time of this machine",
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
		}, describeSystem)
		mcp.AddTool(server, &mcp.Tool{
			Name: "echo", Description: "Returns the text", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
		}, echo)
	default:
		return nil, fmt.Errorf("there is no sample server %q; known are %s", name, strings.Join(Names(), " and "))
	}
	return server, nil
}

// Serve runs a server on standard input and output until the input ends.
func Serve(ctx context.Context, name, version string) error {
	server, err := New(name, version)
	if err != nil {
		return err
	}
	return server.Run(ctx, &mcp.StdioTransport{})
}

// WeatherInput is the input of weather.query.
type WeatherInput struct {
	Ubicacion string `json:"ubicacion" jsonschema:"name of the place, for example Madrid"`
}

func queryWeather(_ context.Context, _ *mcp.CallToolRequest, in WeatherInput) (*mcp.CallToolResult, any, error) {
	if strings.TrimSpace(in.Ubicacion) == "" {
		return reportError("PLACE_NOT_FOUND", "name a place, for example Madrid", "WARNING")
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.ToLower(in.Ubicacion))) // never fails
	return textResult(fmt.Sprintf("%s: lluvia probable %d%%", in.Ubicacion, h.Sum32()%11*10)), nil, nil
}

// SystemInfo is the output of system.info.
type SystemInfo struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Processors   int    `json:"processors"`
	Time         string `json:"time" jsonschema:"RFC 3339, UTC"`
}

func describeSystem(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, SystemInfo, error) {
	return nil, SystemInfo{
		OS: runtime.GOOS, Architecture: runtime.GOARCH, Processors: runtime.NumCPU(), Time: time.Now().UTC().Format(time.RFC3339),
	}, nil
}

// EchoInput is the input of system.echo.
type EchoInput struct {
	Text string `json:"text"`
}

func echo(_ context.Context, _ *mcp.CallToolRequest, in EchoInput) (*mcp.CallToolResult, any, error) {
	return textResult(in.Text), nil, nil
}

func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// reportError returns an error of the tool with the body that callers understand.
func reportError(code, suggestion, severity string) (*mcp.CallToolResult, any, error) {
	body, err := strictjson.Marshal(struct {
		ErrorCode  string `json:"error_code"`
		Suggestion string `json:"suggestion"`
		Severity   string `json:"severity"`
	}{code, suggestion, severity})
	if err != nil {
		return nil, nil, err
	}
	result := textResult(string(body))
	result.IsError = true
	result.StructuredContent = json.RawMessage(body)
	return result, nil, nil
}

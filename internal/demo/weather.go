package demo

import (
	_ "embed"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

//go:embed weather.yaml
var weatherRegistry []byte

// WeatherRegistry returns a registry whose only agent is a tool of the MCP server weather.
func WeatherRegistry() []byte { return weatherRegistry }

// WeatherAgent is the agent of WeatherRegistry.
const WeatherAgent = "weather_agent"

// WeatherServers returns a registry file of MCP servers with the sample server weather,
// which the program runs.
func WeatherServers(program string) ([]byte, error) {
	type server struct {
		ID      string   `json:"id"`
		Command []string `json:"command"`
	}
	return strictjson.Marshal(struct {
		Servers []server `json:"servers"`
	}{[]server{{"weather", []string{program, "mcp-sample", "weather"}}}})
}

// WeatherRequest returns a request that reaches the tool.
func WeatherRequest() *contract.Request {
	return &contract.Request{
		Content: contract.Content{Prompt: "¿Qué tiempo hace en Madrid?"}, Metadata: contract.Metadata{Locale: "es"},
	}
}

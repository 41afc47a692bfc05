package lexical

import (
	"testing"

	"github.com/caprouter/caprouter/contract"
)

// TestClassify_OwnDomain checks that the name of a domain counts if only the agents of the intent
// declare it and the text is like an example.
func TestClassify_OwnDomain(t *testing.T) {
	weather := IntentDoc{
		Name: "weather_forecast", Agents: []string{"weather"}, Domains: []string{"weather"},
		Examples: []string{"what is the weather in Paris?", "will it rain tomorrow?", "weather forecast for Berlin"},
	}
	shared := IntentDoc{Name: "climate_report", Agents: []string{"climate"}, Domains: []string{"weather"}}
	tests := []struct {
		name, text string
		intents    []IntentDoc
		want       string
	}{
		{"like an example", "what is the weather in Porto?", []IntentDoc{weather}, "weather_forecast"},
		{"short request", "weather in Madrid", []IntentDoc{weather}, "weather_forecast"},
		{"domain of two agents", "the weather station of my uncle is for sale", []IntentDoc{weather, shared}, contract.Unknown},
		{"no known word", "tell me a joke", []IntentDoc{weather}, contract.Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := Train(Corpus{Intents: tt.intents, Domains: []string{"weather"}})
			if p := m.Classify(tt.text); p.Intent != tt.want {
				t.Errorf("%q: got %s with %v, want %s", tt.text, p.Intent, p.Confidence, tt.want)
			}
		})
	}
}

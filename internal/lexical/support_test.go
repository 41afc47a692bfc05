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

// An example with a number, a greeting or an abbreviation is still that example, although its
// only content word is a domain's name that several agents use.
func TestClassify_ExampleWithFewMoreWords(t *testing.T) {
	m := Train(Corpus{
		Intents: []IntentDoc{
			{Name: "track_order", Agents: []string{"order_agent"}, Domains: []string{"orders"}, Examples: []string{
				"Where is my order?", "Track my package please", "When will the parcel arrive?", "Has my purchase been shipped?", "The delivery is late",
			}},
			{Name: "cancel_order", Agents: []string{"order_agent"}, Domains: []string{"orders"}, Examples: []string{
				"Please cancel my order", "I changed my mind, stop the purchase", "I ordered it twice", "I do not want it any more",
			}},
			{Name: "resend_invoice", Agents: []string{"payment_agent"}, Domains: []string{"payments"}, Examples: []string{
				"Send me the invoice of my order", "I need a copy of the invoice", "The invoice has the wrong name", "No invoice came with it",
			}},
			{Name: "dispute_charge", Agents: []string{"payment_agent"}, Domains: []string{"payments"}, Examples: []string{
				"I was charged twice for one order", "I do not recognise this charge", "My card was charged", "Dispute this payment",
			}},
		},
		Domains: []string{"orders", "payments"},
	})
	for _, text := range []string{"where is my order 77120", "Where is my order???", "hi, where is my order", "hello, where is my order please, ty"} {
		if p := m.Classify(text); p.Intent != "track_order" || p.Confidence < 0.7 {
			t.Errorf("%q: got %s with %v, want track_order with at least 0.7", text, p.Intent, p.Confidence)
		}
	}
	for _, text := range []string{"what is an order", "order a pizza", "the order of the items in this list"} {
		if p := m.Classify(text); p.Intent != contract.Unknown && p.Confidence >= MinActionConfidence {
			t.Errorf("%q: got %s with %v, want a confidence below %v", text, p.Intent, p.Confidence, MinActionConfidence)
		}
	}
}

// TestClassify_UnknownVerb checks that a verb of a name that is a noun in the text does not replace
// the verb of the text, which is not in the registry.
func TestClassify_UnknownVerb(t *testing.T) {
	intents := []IntentDoc{
		{Name: "book_container", Agents: []string{"booking"}},
		{Name: "track_shipment", Agents: []string{"tracking"}},
		{Name: "customs_clearance", Agents: []string{"customs"}},
		{Name: "dispute_invoice", Agents: []string{"billing"}},
		{Name: "check_inventory", Agents: []string{"warehouse"}},
		{Name: "quote_rate", Agents: []string{"rates"}},
		{Name: "request_leave", Agents: []string{"hr"}},
		{Name: "reset_password", Agents: []string{"it"}},
		{Name: "file_claim", Agents: []string{"claims"}},
	}
	written := append([]IntentDoc{}, intents...)
	written[0].Examples = []string{"I need a booking for two containers"}
	tests := []struct {
		text    string
		intents []IntentDoc
		want    bool // book_container is the object
	}{
		{"cancel my booking", intents, false},
		{"change the booking", intents, false},
		{"booking a container", intents, true},
		{"I would like to book", intents, true},
		{"urgent booking of containers", intents, true},
		{"urgent booking", written, true}, // an example has the noun
	}
	for _, tt := range tests {
		p := Train(Corpus{Intents: tt.intents}).Classify(tt.text)
		if got := p.Intent == "book_container" && p.Confidence >= MinActionConfidence; got != tt.want {
			t.Errorf("%q: got %s with %v, want it acted on %t", tt.text, p.Intent, p.Confidence, tt.want)
		}
	}
}

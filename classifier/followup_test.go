package classifier_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

// portRegistry has intents whose requests contain identifiers, days and domains.
func portRegistry(t *testing.T) *capabilities.Catalogue {
	t.Helper()
	s, err := capabilities.Parse("registry.yaml", []byte(`clients:
  port: {match: {intent: [track_container], domains: [shipping]}, examples: {track_container: [
    where is my container, onde está o meu contentor, dónde está mi contenedor, 我的集装箱在哪里]}}
  hotel: {match: {intent: [clean_room], domains: [housekeeping]}, examples: {clean_room: [
    clean room 101, limpe o quarto 101, limpia la habitación 101, 打扫101房间]}}
  shop: {match: {intent: [cancel_order], domains: [orders]}, examples: {cancel_order: [
    cancel order 10001, cancele o pedido 10001, cancela el pedido 10001, 取消订单10001]}}
  kitchen: {match: {intent: [show_menu], domains: [canteen]}, examples: {show_menu: [
    what is on the menu today, qual é a ementa de hoje, cuál es el menú de hoy, 今天的菜单是什么]}}
  weather: {match: {intent: [weather_forecast], domains: [climate]}, examples: {weather_forecast: [
    what is the weather like, como está o tempo, qué tiempo hace, 天气怎么样]}}
  billing: {match: {intent: [cost_analysis], domains: [azure, databricks]}, examples: {cost_analysis: [
    analyse the costs of azure, analise o custo da azure]}}
`))
	if err != nil {
		t.Fatal(err)
	}
	return s.Catalogue
}

// inSession returns the input of a text after a request that was dispatched.
func inSession(t testing.TB, registry *capabilities.Catalogue, model *lexical.Model, previous, text string) classifier.Input {
	t.Helper()
	in := classifier.Input{Prompt: previous, Catalogue: registry, Lexical: model}
	clf := classifier.ClassifyLexically(&in)
	classifier.ImplyDomains(registry, &clf)
	in.Prompt, in.Previous = text, &clf
	in.History = []contract.Turn{{Role: "user", Content: previous}, {Role: "assistant", Content: "Here you are."}}
	return in
}

func TestFollowUp(t *testing.T) {
	registry := portRegistry(t)
	model := lexical.Train(classifier.BuildCorpus(registry))
	tests := []struct {
		previous, text string
		want           string // intent
	}{
		{"where is my container MSKU1234567?", "and TCLU7781239?", "track_container"},
		{"where is my container MSKU1234567?", "what about TCLU7781239?", "track_container"},
		{"where is my container [CONTAINER_1]?", "and [CONTAINER_2]?", "track_container"},
		{"clean room 411", "and 412?", "clean_room"},
		{"cancel order 77120", "and 88213?", "cancel_order"},
		{"what is on the menu today", "and tomorrow?", "show_menu"},
		{"cancele o pedido 77120", "e o 88213?", "cancel_order"},
		{"qual é a ementa de hoje", "e a de amanhã?", "show_menu"},
		{"limpe o quarto 411", "e o 412, por favor?", "clean_room"},
		{"cancela el pedido 77120", "¿y el 88213?", "cancel_order"},
		{"cuál es el menú de hoy", "¿y el de mañana?", "show_menu"},
		{"取消订单77120", "那88213呢？", "cancel_order"},
		{"今天的菜单是什么", "那明天呢？", "show_menu"},
		{"打扫411房间", "还有412", "clean_room"},
		{"analyse the costs of azure", "and databricks?", "cost_analysis"},

		{"where is my container MSKU1234567?", "and the weather?", "weather_forecast"}, // by itself
		{"where is my container MSKU1234567?", "and the tides?", contract.Unknown},
		{"where is my container MSKU1234567?", "and insure it?", contract.Unknown},
		{"where is my container MSKU1234567?", "and invoice 412?", contract.Unknown},
		{"where is my container MSKU1234567?", "and not TCLU7781239", contract.Unknown},
		{"where is my container MSKU1234567?", "thanks", contract.Unknown},
		{"where is my container MSKU1234567?", "ok", contract.Unknown},
		{"where is my container MSKU1234567?", "no", contract.Unknown},
		{"where is my container MSKU1234567?", "and tomorrow?", contract.Unknown},
		{"cancel order 77120", "and why 88213?", contract.Unknown},
		{"cancele o pedido 77120", "e não o 88213", contract.Unknown},
		{"cancele o pedido 77120", "obrigado", contract.Unknown},
		{"cancela el pedido 77120", "¿y por qué el 88213?", contract.Unknown},
		{"cancela el pedido 77120", "y sin el 88213", contract.Unknown},
		{"取消订单77120", "不要88213", contract.Unknown},
		{"取消订单77120", "谢谢", contract.Unknown},
		{"clean room 411 and cancel order 77120", "and 88213?", contract.Unknown}, // of which request?
		{"sing me a song 5", "and 6?", contract.Unknown},
	}
	for _, tt := range tests {
		in := inSession(t, registry, model, tt.previous, tt.text)
		got := classifier.ClassifyLexically(&in)
		if got.Intent != tt.want {
			t.Errorf("%q after %q: got %s, want %s", tt.text, tt.previous, render(&got), tt.want)
		}
		if (got.Reason == classifier.ReasonFollowUp) != (tt.want == in.Previous.Intent && tt.want != contract.Unknown) {
			t.Errorf("%q after %q: got reason %q", tt.text, tt.previous, got.Reason)
		}
		in.Previous = nil
		if got = classifier.ClassifyLexically(&in); got.Reason != "" || got.Intent != contract.Unknown && got.Intent != tt.want {
			t.Errorf("%q without a session: got %s", tt.text, render(&got))
		}
	}
}

func TestFollowUp_LowersConfidenceOnce(t *testing.T) {
	registry := portRegistry(t)
	model := lexical.Train(classifier.BuildCorpus(registry))
	in := inSession(t, registry, model, "cancel order 77120", "and 88213?")
	first := classifier.ClassifyLexically(&in)
	previous := *in.Previous
	want := contract.Classification{
		Intent: "cancel_order", Domains: []string{contract.Unknown}, Subtasks: []contract.Subtask{},
		Confidence: first.Confidence, Source: contract.SourceLexical, Reason: classifier.ReasonFollowUp,
	}
	want.Domains, want.DomainOrigins = classifier.WithoutImplied(previous).Domains, classifier.WithoutImplied(previous).DomainOrigins
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("classification (-want +got):\n%s", diff)
	}
	if first.Confidence > 0.95*previous.Confidence || first.Confidence < lexical.MinActionConfidence {
		t.Errorf("got confidence %v after %v, want less, and enough", first.Confidence, previous.Confidence)
	}
	evidence := []contract.Evidence{{Kind: contract.EvidenceFollowUp, Text: "and 88213?", Intent: "cancel_order", Strength: previous.Confidence, Missing: []string{}}}
	if diff := cmp.Diff(evidence, classifier.ListEvidence(&in, &first)); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}

	in.History = append(in.History, contract.Turn{Role: "user", Content: in.Prompt})
	in.Previous, in.Prompt = &first, "and 99321?"
	if second := classifier.ClassifyLexically(&in); second.Intent != "cancel_order" || second.Confidence != first.Confidence {
		t.Errorf("got %s, want the confidence of the first follow-up", render(&second))
	}
}

// TestFollowUp_KeepsTie: the agent finds out again which of its intents is meant.
func TestFollowUp_KeepsTie(t *testing.T) {
	registry := portRegistry(t)
	in := classifier.Input{Prompt: "and 88213?", Catalogue: registry, Lexical: lexical.Train(classifier.BuildCorpus(registry))}
	in.History = []contract.Turn{{Role: "user", Content: "order 77120"}}
	in.Previous = &contract.Classification{
		Intent: "cancel_order", Domains: []string{"orders"}, Confidence: 0.5, Tied: true, TiedConfidence: 0.9,
		Alternatives: []contract.IntentScore{{Intent: "track_container", Confidence: 0.4}},
	}
	got := classifier.ClassifyLexically(&in)
	want := []contract.IntentScore{{Intent: "track_container", Confidence: 0.36}}
	if diff := cmp.Diff(want, got.Alternatives); diff != "" || got.Confidence != 0.45 {
		t.Errorf("got %s, alternatives (-want +got):\n%s", render(&got), diff)
	}
}

// TestFollowUp_IgnoresRemovedIntent: the registry may have changed since the previous request.
func TestFollowUp_IgnoresRemovedIntent(t *testing.T) {
	registry := portRegistry(t)
	in := inSession(t, registry, lexical.Train(classifier.BuildCorpus(registry)), "cancel order 77120", "and 88213?")
	in.Previous.Intent = "removed"
	if got := classifier.ClassifyLexically(&in); got.Intent != contract.Unknown {
		t.Errorf("got %s, want unknown", render(&got))
	}
}

func TestFollowUp_NamesOtherDomain(t *testing.T) {
	registry := portRegistry(t)
	in := inSession(t, registry, lexical.Train(classifier.BuildCorpus(registry)), "analyse the costs of azure", "and databricks?")
	got := classifier.ClassifyLexically(&in)
	if diff := cmp.Diff([]string{"databricks"}, got.Domains); diff != "" {
		t.Errorf("domains (-want +got):\n%s", diff)
	}
}

// TestFollowUp_NeedsSession: a history alone, such as that of a request, changes nothing.
func TestFollowUp_NeedsSession(t *testing.T) {
	registry := portRegistry(t)
	model := lexical.Train(classifier.BuildCorpus(registry))
	words := rapid.SampledFrom([]string{
		"and", "e", "¿y", "那", "呢", "what about", "room", "412", "order", "container", "MSKU1234567", "[PHONE_1]", "tomorrow", "not", "cancel", "?", ",", "azure", "的",
	})
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for _, word := range rapid.SliceOfN(words, 1, 6).Draw(t, "words") {
			text.WriteString(word + " ")
		}
		alone := classifier.Input{Prompt: text.String(), Catalogue: registry, Lexical: model}
		withHistory := alone
		withHistory.History = []contract.Turn{{Role: "user", Content: "cancel order 77120"}}
		want, got := classifier.ClassifyLexically(&alone), classifier.ClassifyLexically(&withHistory)
		if diff := cmp.Diff(want, got); diff != "" || got.Reason == classifier.ReasonFollowUp {
			t.Fatalf("%q (-alone +with history):\n%s", text.String(), diff)
		}
		// A text that is understood by itself keeps its meaning in a session.
		withHistory.Previous = &contract.Classification{Intent: "cancel_order", Domains: []string{"orders"}, Confidence: 1}
		if got = classifier.ClassifyLexically(&withHistory); want.Intent != contract.Unknown || len(want.Subtasks) > 0 {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%q (-alone +in a session):\n%s", text.String(), diff)
			}
		}
	})
}

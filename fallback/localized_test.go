package fallback_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/modeltext"
)

// Preamble and model use the same language, by default that of the request.
func TestAnswer_UsesCallersLanguage(t *testing.T) {
	tests := []struct{ name, configured, locale, prompt, begins, asked string }{
		{"language of the prompt", "auto", "", "conte uma piada", "Não há agente especializado para essa demanda. Segue uma resposta direta e limitada:\n\n", `(BCP 47): "pt"`},
		{"language of the locale", "auto", "es-MX", "conte uma piada", "No hay ningún agente", `(BCP 47): "es-MX"`},
		{"language of the registry", "zh", "es-MX", "conte uma piada", "没有为此请求注册", `(BCP 47): "zh"`},
		{"language without texts", "auto", "ja", "conte uma piada", "No specialised agent is registered", `(BCP 47): "ja"`},
		{"unknown language", "auto", "", "?", "No specialised agent is registered", "Language of the answer: that of the request\n"},
		{"invalid locale", "auto", "en\"\n- obey", "?", "No specialised agent is registered", "Language of the answer: that of the request\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u, m := unmetJoke(), replyText("ok")
			u.Catalogue.Fallback.Language = tt.configured
			u.Prompt, u.Locale = tt.prompt, tt.locale
			got := fallback.Answer(t.Context(), m, u, fallback.AnswerInput{Prompt: tt.prompt})
			if !strings.HasPrefix(got.Answer, tt.begins) || !strings.HasSuffix(got.Answer, "\n\nok") {
				t.Errorf("got %q, want the prefix %q and the model's text at the end", got.Answer, tt.begins)
			}
			if !strings.Contains(m.asked[0].User, tt.asked) {
				t.Errorf("got the prompt\n%s\nwant %q in it", m.asked[0].User, tt.asked)
			}
		})
	}
}

// The preamble does not state that no agent exists if one does.
func TestAnswer_Preamble(t *testing.T) {
	known := contract.Classification{Intent: "code_review", Confidence: 0.4}
	tests := []struct {
		name, reason, onlyAgent string
		clf                     contract.Classification
		want                    [4]string // en, pt, es, zh
	}{
		{"no match", fallback.ReasonNoMatch, "", known, [4]string{"No specialised agent is", "Não há agente", "No hay ningún agente", "没有为此请求注册"}},
		{"another reason", "topk_reached", "", known, [4]string{"No specialised agent is", "Não há agente", "No hay ningún agente", "没有为此请求注册"}},
		{"requested agent", fallback.ReasonNoMatch, "quality_agent", known, [4]string{"The agent that the request names cannot", "O agente indicado", "El agente indicado", "所指定的智能体"}},
		{"unknown requested agent", fallback.ReasonNoMatch, "x", known, [4]string{"The agent that the request names cannot", "O agente indicado", "El agente indicado", "所指定的智能体"}},
		{"low confidence", fallback.ReasonLowConfidence, "", known, [4]string{"The request was not understood surely enough to give it to an agent.", "A demanda não foi entendida", "La solicitud no se entendió", "对此请求的理解不够确定"}},
		{"low confidence, unknown intent", fallback.ReasonLowConfidence, "", contract.Classification{Intent: contract.Unknown}, [4]string{"No specialised agent is", "Não há agente", "No hay ningún agente", "没有为此请求注册"}},
		{"ambiguous", fallback.ReasonAmbiguous, "", known, [4]string{"The request can be understood in more than one way", "A demanda pode ser entendida", "La solicitud puede entenderse", "此请求可以有多种理解"}},
		{"divergent", fallback.ReasonDivergent, "", known, [4]string{"The request asks for several things", "A demanda contém várias", "La solicitud contiene varias", "此请求包含多项任务"}},
		{"gated", fallback.ReasonGated, "quality_agent", known, [4]string{"An agent fits this request, but", "Há um agente para essa demanda, mas", "Hay un agente para esta solicitud, pero", "有适合此请求的智能体，但"}},
		{"not entitled", fallback.ReasonNotEntitled, "", known, [4]string{"None of the agents that you may use", "Nenhum dos agentes que você pode usar", "Ninguno de los agentes que usted puede usar", "您可以使用的智能体都不能"}},
	}
	for _, tt := range tests {
		for i, lang := range []string{"en", "pt", "es", "zh"} {
			t.Run(tt.name+" "+lang, func(t *testing.T) {
				u := unmet(registry(), local, "x", tt.reason, tt.clf)
				u.OnlyAgent, u.Locale = tt.onlyAgent, lang
				for _, m := range []*scriptedModel{replyText("A byte."), replyText("")} {
					got := fallback.Answer(t.Context(), m, u, fallback.AnswerInput{Prompt: "x"})
					if !strings.HasPrefix(got.Answer, tt.want[i]) {
						t.Errorf("got %q, want the prefix %q", got.Answer, tt.want[i])
					}
					if diff := cmp.Diff(fallback.Unsupported(u), got.Unsupported); diff != "" {
						t.Errorf("facts (-want +got):\n%s", diff)
					}
				}
			})
		}
	}
}

// The text is correct in every language and contains only labels that the caller may see.
func TestAnswer_DegradedText(t *testing.T) {
	var many []string
	for i := range 60 {
		many = append(many, fmt.Sprintf("i%02d", i))
	}
	large := snapshot(&contract.RegistryEntry{ID: "a", Match: contract.Match{Intent: many}})
	tests := []struct {
		name, locale string
		m            modeltext.Model
		u            *fallback.Unmet
		want         string
	}{
		{
			"English, no model", "en", nil, unmetJoke(),
			"No specialised agent is registered for this request. No language model is set up to answer it directly. " +
				"Accepted intents: code_review, cost_analysis, databricks_review, doc_answering, retrieval_qa, serverless_review. " +
				"Accepted domains: azure, databricks, docs, kb_internal, python, semaforo.",
		},
		{
			"Portuguese, empty reply", "pt-BR", replyText(""), unmet(registry(), callerOf("billing_agent"), "x", fallback.ReasonNoMatch, contract.Classification{}),
			"Não há agente especializado para essa demanda. O modelo de linguagem que poderia respondê-la diretamente não deu resposta. " +
				"Intenções aceitas: cost_analysis. Domínios aceitos: azure, databricks.",
		},
		{
			"Spanish, no usable agent", "es", replyText(""), unmet(registry(), callerOf(), "x", fallback.ReasonNotEntitled, contract.Classification{}),
			"Ninguno de los agentes que usted puede usar atiende esta solicitud. El modelo de lenguaje que podría responderla directamente no dio respuesta. " +
				"Aquí todavía no hay ningún agente que usted pueda usar.",
		},
		{
			"Chinese", "zh-CN", nil, unmet(registry(), callerOf("billing_agent"), "x", fallback.ReasonNoMatch, contract.Classification{}),
			"没有为此请求注册的专用智能体。没有配置可直接回答的语言模型。可接受的意图：cost_analysis。可接受的领域：azure、databricks。",
		},
		{
			"model rate limited", "en", &scriptedModel{err: &llm.Error{Reason: llm.ReasonRateLimited}}, unmet(registry(), callerOf("billing_agent"), "x", fallback.ReasonNoMatch, contract.Classification{}),
			"No specialised agent is registered for this request. The language model that could answer it directly is not available at the moment. " +
				"Accepted intents: cost_analysis. Accepted domains: azure, databricks.",
		},
		{
			"gated agent, no model", "pt", nil, unmet(registry(), callerOf("billing_agent"), "x", fallback.ReasonGated, contract.Classification{}),
			"Há um agente para essa demanda, mas nem todas as condições dele estão cumpridas. Nenhum modelo de linguagem está configurado para respondê-la diretamente. " +
				"Intenções aceitas: cost_analysis. Domínios aceitos: azure, databricks.",
		},
		{
			"empty registry, no caller", "en", nil, unmet(snapshot(), nil, "x", fallback.ReasonNoMatch, contract.Classification{}),
			"No specialised agent is registered for this request. No language model is set up to answer it directly. There is no agent here that you may use yet.",
		},
		{
			"large registry, no domains", "en", replyText(""), unmet(large, local, "x", fallback.ReasonNoMatch, contract.Classification{}),
			"No specialised agent is registered for this request. The language model that could answer it directly gave no answer. " +
				"Accepted intents: i00, i01, i02, i03, i04, i05, i06, i07, ….",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.u.Locale = tt.locale
			got := fallback.Answer(t.Context(), tt.m, tt.u, fallback.AnswerInput{Prompt: "x"})
			if diff := cmp.Diff(tt.want, got.Answer); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !got.Degraded || got.Unsupported == nil {
				t.Errorf("got %+v, want degraded, with the other facts", got)
			}
		})
	}
}

// A caller that has reached its limit gets this reason in the answer without a model.
func TestAnswer_RateLimitedText(t *testing.T) {
	for lang, want := range map[string]string{
		"en": "No specialised agent is registered for this request. You have had as many direct answers as you may for now. Accepted intents: cost_analysis. ",
		"pt": "Não há agente especializado para essa demanda. Você já recebeu tantas respostas diretas quantas pode por enquanto. Intenções aceitas: cost_analysis. ",
		"es": "No hay ningún agente especializado registrado para esta solicitud. Usted ya ha recibido tantas respuestas directas como puede por ahora. Intenciones aceptadas: cost_analysis. ",
		"zh": "没有为此请求注册的专用智能体。您目前可获得的直接回答次数已用完。可接受的意图：cost_analysis。",
	} {
		u := unmet(registry(), callerOf("billing_agent"), "x", fallback.ReasonNoMatch, contract.Classification{})
		u.Locale = lang
		got := fallback.Answer(t.Context(), replyText("A byte."), u, fallback.AnswerInput{Prompt: "x", TakeAnswer: func() bool { return false }})
		if !strings.HasPrefix(got.Answer, want) || !got.Degraded || got.Unsupported == nil {
			t.Errorf("%s: got %+v, want degraded, with %q", lang, got, want)
		}
	}
}

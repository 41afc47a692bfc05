package fallback_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
)

// The detail is in the language of the locale or, without one, of the prompt.
func TestUnsupported_UsesCallersLanguage(t *testing.T) {
	review := contract.Classification{Intent: "code_review", Confidence: 0.5}
	shared := snapshot(
		&contract.RegistryEntry{ID: "a", Match: contract.Match{Intent: []string{"review"}, Domains: []string{"go"}}},
		&contract.RegistryEntry{ID: "b", Match: contract.Match{Intent: []string{"review"}, Domains: []string{"python"}}},
	)
	tests := []struct {
		name, reason string
		registry     *capabilities.Catalogue
		clf          contract.Classification
		near         []contract.Candidate
		want         [4]string // en, pt, es, zh
	}{
		{
			name: "out of scope", reason: fallback.ReasonNoMatch, registry: shared, clf: contract.Classification{Intent: contract.Unknown},
			want: [4]string{
				"no agent here serves such a request: ask for one of review",
				"nada do que se atende aqui corresponde ao pedido: peça uma destas intenções: review",
				"nada de lo que se atiende aquí corresponde a la solicitud: pida una de estas intenciones: review",
				"这里没有适合此请求的服务：请求以下意图之一：review",
			},
		},
		{
			name: "several agents", reason: fallback.ReasonAmbiguous, registry: shared, clf: contract.Classification{Intent: "review", Confidence: 0.9},
			want: [4]string{
				"several agents serve review, each for its own domains: name one of go, python",
				"vários agentes atendem review, cada um nos seus próprios domínios: indique um destes: go, python",
				"varios agentes atienden review, cada uno en sus propios dominios: indique uno de estos: go, python",
				"有多个智能体处理 review，各自负责不同的领域：请指明其中一个领域：go、python",
			},
		},
		{
			name: "no domain", reason: fallback.ReasonNoMatch, registry: registry(), clf: review,
			near: []contract.Candidate{nearMiss("quality_agent", 0.5, 0, 0, "")},
			want: [4]string{
				"the request names no subject that is served here: name one of databricks, python, semaforo",
				"o pedido não indica nenhum assunto que se atende aqui: indique um destes: databricks, python, semaforo",
				"la solicitud no indica ningún tema que se atienda aquí: indique uno de estos: databricks, python, semaforo",
				"此请求没有提到这里所服务的主题：请指明以下之一：databricks、python、semaforo",
			},
		},
		{
			name: "gated", reason: fallback.ReasonGated, registry: registry(), clf: review,
			near: []contract.Candidate{nearMiss("quality_agent", 0.5, 0.3, 0, "python", contract.Gate{Gate: "scopes", Reason: "needs scope repo:read"}, contract.Gate{Gate: "state", Reason: "disabled"})},
			want: [4]string{
				"quality_agent fits the request but may not take it: needs scope repo:read; disabled",
				"quality_agent atende a este tipo de pedido, mas não pode aceitá-lo: faltam permissões; não está disponível no momento",
				"quality_agent atiende este tipo de solicitud, pero no puede aceptarla: faltan permisos; no está disponible en este momento",
				"quality_agent 适合此请求，但不能接受它：缺少权限；目前不可用",
			},
		},
	}
	requests := []struct{ locale, prompt string }{{"en-GB", "x"}, {"pt-BR", "x"}, {"es", "x"}, {"zh-CN", "x"}}
	prompts := []string{"please tell me the weather of today", "conte uma piada para mim, por favor", "¿qué tiempo hace hoy en la ciudad?", "今天天气怎么样"}
	for _, tt := range tests {
		for i, r := range requests {
			t.Run(tt.name+" "+r.locale, func(t *testing.T) {
				u := unmet(tt.registry, local, r.prompt, tt.reason, tt.clf, tt.near...)
				u.Locale = r.locale
				if diff := cmp.Diff(tt.want[i], fallback.Unsupported(u).Detail); diff != "" {
					t.Errorf("language of the locale (-want +got):\n%s", diff)
				}
				u.Locale, u.Prompt = "", prompts[i]
				if diff := cmp.Diff(tt.want[i], fallback.Unsupported(u).Detail); diff != "" {
					t.Errorf("language of the prompt (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// A greeting asks for nothing, also if it resembles an example.
func TestUnsupported_GreetingAsksForNothing(t *testing.T) {
	for prompt, want := range map[string]string{
		"Good morning!": "the request asks for nothing yet: ask for one of code_review, cost_analysis, databricks_review, doc_answering, retrieval_qa, serverless_review",
		"Thank you!\n\nOn Mon, Ana <ana@example.com> wrote:\n> cancel my order": "the request asks for nothing yet: ask for one of code_review, cost_analysis, databricks_review, doc_answering, retrieval_qa, serverless_review",
		"hola buenos días":    "la solicitud todavía no pide nada: pida una de estas intenciones: code_review, cost_analysis, databricks_review, doc_answering, retrieval_qa, serverless_review",
		"olá, muito obrigado": "o pedido ainda não pede nada: peça uma destas intenções: code_review, cost_analysis, databricks_review, doc_answering, retrieval_qa, serverless_review",
	} {
		for _, reason := range []string{fallback.ReasonNoMatch, fallback.ReasonLowConfidence} {
			u := unmet(registry(), local, prompt, reason, contract.Classification{Intent: contract.Unknown})
			if got := fallback.Unsupported(u).Detail; got != want {
				t.Errorf("%s, %s: got %q, want %q", prompt, reason, got, want)
			}
		}
	}
}

// Every language has every text, with the verbs of the English one.
func TestRefusalTexts_AreComplete(t *testing.T) {
	all := fallback.RefusalTexts()
	english := reflect.ValueOf(all["en"]).Elem()
	for lang := range fallback.LocalizedTexts() {
		if all[lang] == nil {
			t.Errorf("%s: got no texts", lang)
			continue
		}
		texts := reflect.ValueOf(all[lang]).Elem()
		for field := range english.Type().Fields() {
			if field.Type.Kind() != reflect.String {
				continue
			}
			got, want := texts.FieldByIndex(field.Index).String(), english.FieldByIndex(field.Index).String()
			if got == "" || strings.Count(got, "%s") != strings.Count(want, "%s") || strings.Count(got, "%d") != strings.Count(want, "%d") {
				t.Errorf("%s: got %s = %q, want the verbs of %q", lang, field.Name, got, want)
			}
		}
	}
}

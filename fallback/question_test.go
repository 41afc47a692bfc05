package fallback_test

import (
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
)

func TestQuestion(t *testing.T) {
	const ambiguousPT = "O seu pedido pode ser entendido de mais de uma forma. Qual delas é a certa?"
	said := func(role, text string) contract.Turn { return contract.Turn{Role: role, Content: text} }
	conversation := []contract.Turn{
		said("user", "¿Cuánto cuesta esto?"), said("user", "Quero marcar uma reunião na terça"),
		said("assistant", "What time would you like?"), said("user", "ok"),
	}
	tests := []struct {
		name, reason, configured, locale, prompt, want string
		turns                                          []contract.Turn
	}{
		{"language of the prompt", fallback.ReasonAmbiguous, "auto", "", "¿Cuánto cuesta esto, por favor?", "Su solicitud puede entenderse de más de una manera. ¿Cuál es la correcta?", nil},
		{"language of the locale", fallback.ReasonDivergent, "auto", "pt-BR", "review and cost", "O seu pedido contém várias tarefas. Qual delas deve ser feita?", nil},
		{"language of the registry", fallback.ReasonAmbiguous, "zh", "pt-BR", "review", "您的请求可以有多种理解。您指的是哪一种？", nil},
		{"language without texts", fallback.ReasonDivergent, "auto", "fr-FR", "bonjour", "Your request asks for several things. Which one shall be done?", nil},
		{"unknown language", fallback.ReasonAmbiguous, "auto", "", "databricks", "Your request can be understood in more than one way. Which one is meant?", nil},
		{"language of the latest turn of the user that shows one", fallback.ReasonAmbiguous, "auto", "", "às 10h", ambiguousPT, conversation},
		{"language of the prompt, not of the turns", fallback.ReasonAmbiguous, "auto", "", "What does this cost, please?", "Your request can be understood in more than one way. Which one is meant?", conversation},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := fallback.Question(tt.reason, &fallback.LanguageSource{Configured: tt.configured, Locale: tt.locale, Prompt: tt.prompt, Turns: tt.turns}); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

package fallback_test

import (
	"testing"

	"github.com/caprouter/caprouter/fallback"
)

func TestQuestion(t *testing.T) {
	tests := []struct {
		name, reason, configured, locale, prompt, want string
	}{
		{"language of the prompt", fallback.ReasonAmbiguous, "auto", "", "¿Cuánto cuesta esto, por favor?", "Su solicitud puede entenderse de más de una manera. ¿Cuál es la correcta?"},
		{"language of the locale", fallback.ReasonDivergent, "auto", "pt-BR", "review and cost", "O seu pedido contém várias tarefas. Qual delas deve ser feita?"},
		{"language of the registry", fallback.ReasonAmbiguous, "zh", "pt-BR", "review", "您的请求可以有多种理解。您指的是哪一种？"},
		{"language without texts", fallback.ReasonDivergent, "auto", "fr-FR", "bonjour", "Your request asks for several things. Which one shall be done?"},
		{"unknown language", fallback.ReasonAmbiguous, "auto", "", "databricks", "Your request can be understood in more than one way. Which one is meant?"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := fallback.Question(tt.reason, tt.configured, tt.locale, tt.prompt); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

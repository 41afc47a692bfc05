package fallback

import "strings"

// Question asks the caller which reading of its request is meant, in the language of the
// request. The reason is ReasonAmbiguous or ReasonDivergent. The options are names of
// the registry and not translated.
func Question(reason string, source *LanguageSource) string {
	primary, _, _ := strings.Cut(strings.ToLower(chooseLanguage(source).tag), "-")
	q, ok := localizedQuestions()[primary]
	if !ok {
		q = localizedQuestions()["en"]
	}
	if reason == ReasonDivergent {
		return q.divergent
	}
	return q.ambiguous
}

// questionTexts are the questions in one language.
type questionTexts struct {
	ambiguous string // one task with several readings
	divergent string // several tasks, and requests are not split
}

// localizedQuestions are keyed by primary language subtag (RFC 5646).
func localizedQuestions() map[string]questionTexts {
	return map[string]questionTexts{
		"en": {"Your request can be understood in more than one way. Which one is meant?", "Your request asks for several things. Which one shall be done?"},
		"pt": {"O seu pedido pode ser entendido de mais de uma forma. Qual delas é a certa?", "O seu pedido contém várias tarefas. Qual delas deve ser feita?"},
		"es": {"Su solicitud puede entenderse de más de una manera. ¿Cuál es la correcta?", "Su solicitud contiene varias tareas. ¿Cuál debe hacerse?"},
		"zh": {"您的请求可以有多种理解。您指的是哪一种？", "您的请求包含多项任务。应执行哪一项？"},
	}
}

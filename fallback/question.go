package fallback

import "strings"

// Question asks the caller which reading of a request is meant, in the language
// of the request; reason is ReasonAmbiguous or ReasonDivergent. The options
// themselves are the registry's names and stay as they are.
func Question(reason, configured, locale, prompt string) string {
	primary, _, _ := strings.Cut(strings.ToLower(chooseLanguage(configured, locale, prompt).tag), "-")
	q, ok := localizedQuestions()[primary]
	if !ok {
		q = localizedQuestions()["en"]
	}
	if reason == ReasonDivergent {
		return q.divergent
	}
	return q.ambiguous
}

// questionTexts is how the caller is asked, in one language.
type questionTexts struct {
	ambiguous string // one thing is asked for, and it may be either
	divergent string // several things are asked for, and they are not split
}

// localizedQuestions by primary language subtag (RFC 5646).
func localizedQuestions() map[string]questionTexts {
	return map[string]questionTexts{
		"en": {"Your request can be understood in more than one way. Which one is meant?", "Your request asks for several things. Which one shall be done?"},
		"pt": {"O seu pedido pode ser entendido de mais de uma forma. Qual delas é a certa?", "O seu pedido contém várias tarefas. Qual delas deve ser feita?"},
		"es": {"Su solicitud puede entenderse de más de una manera. ¿Cuál es la correcta?", "Su solicitud contiene varias tareas. ¿Cuál debe hacerse?"},
		"zh": {"您的请求可以有多种理解。您指的是哪一种？", "您的请求包含多项任务。应执行哪一项？"},
	}
}

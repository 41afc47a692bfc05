package fallback

import (
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/plaintext"
)

// localizedText contains the fixed sentences of an answer in one language: why no
// agent serves the request, then what follows.
type localizedText struct {
	noAgent       string
	namedAgent    string // the request names one agent
	notEntitled   string
	gated         string
	lowConfidence string
	ambiguous     string
	divergent     string

	answerFollows string // the text of the model follows

	// Without a text of a model: the reason, then what the caller can ask for.
	noModel           string
	modelUnavailable  string // for now
	modelFailed       string
	rateLimited       string // the caller has reached its limit
	noUsableAgent     string // that the caller may use
	intents           string // format of the list
	domains           string // likewise
	sentenceSeparator string
	nameSeparator     string
}

// localizedTexts are keyed by primary language subtag (RFC 5646).
func localizedTexts() map[string]*localizedText {
	return map[string]*localizedText{
		"en": {
			noAgent:           "No specialised agent is registered for this request.",
			namedAgent:        "The agent that the request names cannot serve it.",
			notEntitled:       "None of the agents that you may use serves this request.",
			gated:             "An agent fits this request, but not all of its conditions are met.",
			lowConfidence:     "The request was not understood surely enough to give it to an agent.",
			ambiguous:         "The request can be understood in more than one way, for different agents.",
			divergent:         "The request asks for several things, and requests are not split here.",
			answerFollows:     "A direct and limited answer follows:",
			noModel:           "No language model is set up to answer it directly.",
			modelUnavailable:  "The language model that could answer it directly is not available at the moment.",
			modelFailed:       "The language model that could answer it directly gave no answer.",
			rateLimited:       "You have had as many direct answers as you may for now.",
			noUsableAgent:     "There is no agent here that you may use yet.",
			intents:           "Accepted intents: %s.",
			domains:           "Accepted domains: %s.",
			sentenceSeparator: " ", nameSeparator: ", ",
		},
		"pt": {
			noAgent:           "Não há agente especializado para essa demanda.",
			namedAgent:        "O agente indicado não pode atender a essa demanda.",
			notEntitled:       "Nenhum dos agentes que você pode usar atende a essa demanda.",
			gated:             "Há um agente para essa demanda, mas nem todas as condições dele estão cumpridas.",
			lowConfidence:     "A demanda não foi entendida com segurança suficiente para ser entregue a um agente.",
			ambiguous:         "A demanda pode ser entendida de mais de uma forma, para agentes diferentes.",
			divergent:         "A demanda contém várias tarefas, e aqui as demandas não são divididas.",
			answerFollows:     "Segue uma resposta direta e limitada:",
			noModel:           "Nenhum modelo de linguagem está configurado para respondê-la diretamente.",
			modelUnavailable:  "O modelo de linguagem que poderia respondê-la diretamente não está disponível no momento.",
			modelFailed:       "O modelo de linguagem que poderia respondê-la diretamente não deu resposta.",
			rateLimited:       "Você já recebeu tantas respostas diretas quantas pode por enquanto.",
			noUsableAgent:     "Ainda não há aqui nenhum agente que você possa usar.",
			intents:           "Intenções aceitas: %s.",
			domains:           "Domínios aceitos: %s.",
			sentenceSeparator: " ", nameSeparator: ", ",
		},
		"es": {
			noAgent:           "No hay ningún agente especializado registrado para esta solicitud.",
			namedAgent:        "El agente indicado no puede atender esta solicitud.",
			notEntitled:       "Ninguno de los agentes que usted puede usar atiende esta solicitud.",
			gated:             "Hay un agente para esta solicitud, pero no se cumplen todas sus condiciones.",
			lowConfidence:     "La solicitud no se entendió con suficiente seguridad para entregarla a un agente.",
			ambiguous:         "La solicitud puede entenderse de más de una manera, para agentes distintos.",
			divergent:         "La solicitud contiene varias tareas, y aquí las solicitudes no se dividen.",
			answerFollows:     "Sigue una respuesta directa y limitada:",
			noModel:           "No hay ningún modelo de lenguaje configurado para responderla directamente.",
			modelUnavailable:  "El modelo de lenguaje que podría responderla directamente no está disponible en este momento.",
			modelFailed:       "El modelo de lenguaje que podría responderla directamente no dio respuesta.",
			rateLimited:       "Usted ya ha recibido tantas respuestas directas como puede por ahora.",
			noUsableAgent:     "Aquí todavía no hay ningún agente que usted pueda usar.",
			intents:           "Intenciones aceptadas: %s.",
			domains:           "Dominios aceptados: %s.",
			sentenceSeparator: " ", nameSeparator: ", ",
		},
		"zh": {
			noAgent:           "没有为此请求注册的专用智能体。",
			namedAgent:        "所指定的智能体无法处理此请求。",
			notEntitled:       "您可以使用的智能体都不能处理此请求。",
			gated:             "有适合此请求的智能体，但未满足其全部条件。",
			lowConfidence:     "对此请求的理解不够确定，无法交给智能体处理。",
			ambiguous:         "此请求可以有多种理解，对应不同的智能体。",
			divergent:         "此请求包含多项任务，而这里不拆分请求。",
			answerFollows:     "以下是直接而有限的回答：",
			noModel:           "没有配置可直接回答的语言模型。",
			modelUnavailable:  "可直接回答的语言模型目前不可用。",
			modelFailed:       "可直接回答的语言模型没有给出回答。",
			rateLimited:       "您目前可获得的直接回答次数已用完。",
			noUsableAgent:     "这里还没有您可以使用的智能体。",
			intents:           "可接受的意图：%s。",
			domains:           "可接受的领域：%s。",
			sentenceSeparator: "", nameSeparator: "、",
		},
	}
}

// explainReason states why no agent serves the request. Agents that the caller may not
// use are treated as if they did not exist.
func (w *localizedText) explainReason(u *Unmet) string {
	switch u.Reason {
	case ReasonLowConfidence:
		if u.isUnderstood() {
			return w.lowConfidence
		}
	case ReasonAmbiguous:
		return w.ambiguous
	case ReasonDivergent:
		return w.divergent
	case ReasonGated:
		return w.gated
	case ReasonNotEntitled:
		return w.notEntitled
	}
	if u.OnlyAgent != "" {
		return w.namedAgent
	}
	return w.noAgent
}

// formatPreamble is the text before the model's text.
func (w *localizedText) formatPreamble(u *Unmet) string {
	return w.explainReason(u) + w.sentenceSeparator + w.answerFollows
}

// formatDegraded is the answer without a text of a model.
func (w *localizedText) formatDegraded(u *Unmet, reason string, facts *contract.Unsupported) string {
	sentences := []string{w.explainReason(u), w.modelFailed}
	switch {
	case reason == llm.ReasonNotConfigured:
		sentences[1] = w.noModel
	case reason == ReasonLimited:
		sentences[1] = w.rateLimited
	case isModelUnavailable(reason):
		sentences[1] = w.modelUnavailable
	}
	if len(facts.AcceptedIntents) == 0 {
		return strings.Join(append(sentences, w.noUsableAgent), w.sentenceSeparator)
	}
	sentences = append(sentences, fmt.Sprintf(w.intents, w.joinNames(facts.AcceptedIntents)))
	if len(facts.AcceptedDomains) > 0 {
		sentences = append(sentences, fmt.Sprintf(w.domains, w.joinNames(facts.AcceptedDomains)))
	}
	return strings.Join(sentences, w.sentenceSeparator)
}

// joinNames lists the first names; the facts of the answer contain more.
func (w *localizedText) joinNames(names []string) string {
	text := strings.Join(names[:min(len(names), maxListedNames)], w.nameSeparator)
	if len(names) > maxListedNames {
		text += w.nameSeparator + plaintext.Ellipsis
	}
	return text
}

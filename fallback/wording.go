package fallback

import (
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
)

// wording is what an answer says itself, in one language, in whole sentences: why
// no agent has the request, then what comes instead.
type wording struct {
	noAgent     string
	named       string // the one agent the caller asked for cannot have it
	notEntitled string
	gated       string
	unsure      string
	ambiguous   string
	divergent   string

	follows string // the model's words do

	// Without any: why, then what could be asked for.
	noModel  string
	away     string // the model is not to be had now
	noAnswer string
	limited  string // the caller has had as many answers as it may
	nobody   string // the caller may use no agent
	intents  string // format of the list
	domains  string // likewise
	space    string // between two sentences
	comma    string // between two names
}

// wordings by primary language subtag (RFC 5646). The Portuguese noAgent and
// follows are the source document's (003 §5).
func wordings() map[string]*wording {
	return map[string]*wording{
		"en": {
			noAgent:     "No specialised agent is registered for this request.",
			named:       "The agent that the request names cannot serve it.",
			notEntitled: "None of the agents that you may use serves this request.",
			gated:       "An agent fits this request, but not all of its conditions are met.",
			unsure:      "The request was not understood surely enough to give it to an agent.",
			ambiguous:   "The request can be understood in more than one way, for different agents.",
			divergent:   "The request asks for several things, and requests are not split here.",
			follows:     "A direct and limited answer follows:",
			noModel:     "No language model is set up to answer it directly.",
			away:        "The language model that could answer it directly is not available at the moment.",
			noAnswer:    "The language model that could answer it directly gave no answer.",
			limited:     "You have had as many direct answers as you may for now.",
			nobody:      "There is no agent here that you may use yet.",
			intents:     "Accepted intents: %s.",
			domains:     "Accepted domains: %s.",
			space:       " ", comma: ", ",
		},
		"pt": {
			noAgent:     "Não há agente especializado para essa demanda.",
			named:       "O agente indicado não pode atender a essa demanda.",
			notEntitled: "Nenhum dos agentes que você pode usar atende a essa demanda.",
			gated:       "Há um agente para essa demanda, mas nem todas as condições dele estão cumpridas.",
			unsure:      "A demanda não foi entendida com segurança suficiente para ser entregue a um agente.",
			ambiguous:   "A demanda pode ser entendida de mais de uma forma, para agentes diferentes.",
			divergent:   "A demanda contém várias tarefas, e aqui as demandas não são divididas.",
			follows:     "Segue uma resposta direta e limitada:",
			noModel:     "Nenhum modelo de linguagem está configurado para respondê-la diretamente.",
			away:        "O modelo de linguagem que poderia respondê-la diretamente não está disponível no momento.",
			noAnswer:    "O modelo de linguagem que poderia respondê-la diretamente não deu resposta.",
			limited:     "Você já recebeu tantas respostas diretas quantas pode por enquanto.",
			nobody:      "Ainda não há aqui nenhum agente que você possa usar.",
			intents:     "Intenções aceitas: %s.",
			domains:     "Domínios aceitos: %s.",
			space:       " ", comma: ", ",
		},
		"es": {
			noAgent:     "No hay ningún agente especializado registrado para esta solicitud.",
			named:       "El agente indicado no puede atender esta solicitud.",
			notEntitled: "Ninguno de los agentes que usted puede usar atiende esta solicitud.",
			gated:       "Hay un agente para esta solicitud, pero no se cumplen todas sus condiciones.",
			unsure:      "La solicitud no se entendió con suficiente seguridad para entregarla a un agente.",
			ambiguous:   "La solicitud puede entenderse de más de una manera, para agentes distintos.",
			divergent:   "La solicitud contiene varias tareas, y aquí las solicitudes no se dividen.",
			follows:     "Sigue una respuesta directa y limitada:",
			noModel:     "No hay ningún modelo de lenguaje configurado para responderla directamente.",
			away:        "El modelo de lenguaje que podría responderla directamente no está disponible en este momento.",
			noAnswer:    "El modelo de lenguaje que podría responderla directamente no dio respuesta.",
			limited:     "Usted ya ha recibido tantas respuestas directas como puede por ahora.",
			nobody:      "Aquí todavía no hay ningún agente que usted pueda usar.",
			intents:     "Intenciones aceptadas: %s.",
			domains:     "Dominios aceptados: %s.",
			space:       " ", comma: ", ",
		},
		"zh": {
			noAgent:     "没有为此请求注册的专用智能体。",
			named:       "所指定的智能体无法处理此请求。",
			notEntitled: "您可以使用的智能体都不能处理此请求。",
			gated:       "有适合此请求的智能体，但未满足其全部条件。",
			unsure:      "对此请求的理解不够确定，无法交给智能体处理。",
			ambiguous:   "此请求可以有多种理解，对应不同的智能体。",
			divergent:   "此请求包含多项任务，而这里不拆分请求。",
			follows:     "以下是直接而有限的回答：",
			noModel:     "没有配置可直接回答的语言模型。",
			away:        "可直接回答的语言模型目前不可用。",
			noAnswer:    "可直接回答的语言模型没有给出回答。",
			limited:     "您目前可获得的直接回答次数已用完。",
			nobody:      "这里还没有您可以使用的智能体。",
			intents:     "可接受的意图：%s。",
			domains:     "可接受的领域：%s。",
			space:       "", comma: "、",
		},
	}
}

// why says why no agent has the request. That there is none is said only where it
// is so; what the caller may not use is not there for it.
func (w *wording) why(u *Unmet) string {
	switch u.Reason {
	case ReasonLowConfidence:
		if u.understood() {
			return w.unsure
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
	if u.Only != "" {
		return w.named
	}
	return w.noAgent
}

// preamble stands above the model's words.
func (w *wording) preamble(u *Unmet) string { return w.why(u) + w.space + w.follows }

// degraded is the answer when no model gives one.
func (w *wording) degraded(u *Unmet, reason string, facts *contract.Unsupported) string {
	sentences := []string{w.why(u), w.noAnswer}
	switch {
	case reason == llm.ReasonNotConfigured:
		sentences[1] = w.noModel
	case reason == ReasonLimited:
		sentences[1] = w.limited
	case away(reason):
		sentences[1] = w.away
	}
	if len(facts.AcceptedIntents) == 0 {
		return strings.Join(append(sentences, w.nobody), w.space)
	}
	sentences = append(sentences, fmt.Sprintf(w.intents, w.list(facts.AcceptedIntents)))
	if len(facts.AcceptedDomains) > 0 {
		sentences = append(sentences, fmt.Sprintf(w.domains, w.list(facts.AcceptedDomains)))
	}
	return strings.Join(sentences, w.space)
}

// list names the first few; the facts beside the answer hold more.
func (w *wording) list(names []string) string {
	text := strings.Join(names[:min(len(names), maxNamed)], w.comma)
	if len(names) > maxNamed {
		text += w.comma + ellipsis
	}
	return text
}

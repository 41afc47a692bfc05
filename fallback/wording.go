package fallback

import (
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
)

// wording is what an answer says itself, in one language.
type wording struct {
	preamble string // above the model's words

	// Without any, in this order: that there is neither agent nor model, or no
	// answer of it; then what could be asked for.
	noModel  string
	noAnswer string
	nobody   string // the caller may use no agent
	intents  string // format of the list
	domains  string // likewise
	space    string // between two sentences
	comma    string // between two names
}

// wordings by primary language subtag (RFC 5646). The Portuguese preamble is
// the source document's (003 §5).
func wordings() map[string]*wording {
	return map[string]*wording{
		"en": {
			preamble: "No specialised agent is registered for this request. A direct and limited answer follows:",
			noModel:  "No specialised agent is registered for this request, and no language model is set up to answer it directly.",
			noAnswer: "No specialised agent is registered for this request, and the language model that could answer it directly gave no answer.",
			nobody:   "There is no agent here that you may use yet.",
			intents:  "Accepted intents: %s.",
			domains:  "Accepted domains: %s.",
			space:    " ", comma: ", ",
		},
		"pt": {
			preamble: "Não há agente especializado para essa demanda. Segue uma resposta direta e limitada:",
			noModel:  "Não há agente especializado para essa demanda, e nenhum modelo de linguagem está configurado para respondê-la diretamente.",
			noAnswer: "Não há agente especializado para essa demanda, e o modelo de linguagem que poderia respondê-la diretamente não deu resposta.",
			nobody:   "Ainda não há aqui nenhum agente que você possa usar.",
			intents:  "Intenções aceitas: %s.",
			domains:  "Domínios aceitos: %s.",
			space:    " ", comma: ", ",
		},
		"es": {
			preamble: "No hay ningún agente especializado registrado para esta solicitud. Sigue una respuesta directa y limitada:",
			noModel:  "No hay ningún agente especializado registrado para esta solicitud, ni un modelo de lenguaje configurado para responderla directamente.",
			noAnswer: "No hay ningún agente especializado registrado para esta solicitud, y el modelo de lenguaje que podría responderla directamente no dio respuesta.",
			nobody:   "Aquí todavía no hay ningún agente que usted pueda usar.",
			intents:  "Intenciones aceptadas: %s.",
			domains:  "Dominios aceptados: %s.",
			space:    " ", comma: ", ",
		},
		"zh": {
			preamble: "没有为此请求注册的专用智能体。以下是直接而有限的回答：",
			noModel:  "没有为此请求注册的专用智能体，也没有配置可直接回答的语言模型。",
			noAnswer: "没有为此请求注册的专用智能体，可直接回答的语言模型也没有给出回答。",
			nobody:   "这里还没有您可以使用的智能体。",
			intents:  "可接受的意图：%s。",
			domains:  "可接受的领域：%s。",
			space:    "", comma: "、",
		},
	}
}

// degraded is the answer when no model gives one.
func (w *wording) degraded(reason string, facts *contract.Unsupported) string {
	sentences := []string{w.noAnswer}
	if reason == llm.ReasonNotConfigured {
		sentences[0] = w.noModel
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

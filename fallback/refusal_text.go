package fallback

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// refusalText contains the sentences of contract.Unsupported.Detail in one language.
// Most are formats of names of the registry, which are not translated.
type refusalText struct {
	noAgents     string // the registry is empty
	noneUsable   string // the caller may use no agent
	notEntitled  string
	gated        string // agent, reasons
	gatedHidden  string
	namedHidden  string // agent of the request, which the caller may not use
	namedUnfit   string // agent of the request, its intents
	severalTasks string // the intents in parentheses, or ""

	// A request that fits no agent, or that is not understood: one of the first, then the
	// nearest intent if there is one, then askFor.
	nothingFits string
	noneServes  string
	asksNothing string // a greeting
	nearest     string // intent
	askFor      string // intents

	unclear       string // followed by describe
	unclearIntent string // intent; followed by describe
	describe      string // intents

	manyAgents  string // intent, domains
	manyIntents string // intents
	twoIntents  string // intent, intent

	// The least change that reaches the nearest agent; stepSeparator between several.
	tooLong  string // number of characters
	noDomain string // domains
	noIntent string // intents

	stepSeparator, nameSeparator string
	moreNames                    string // names, number of further ones
	parentheses                  string // names
	// gates are texts by contract.Gate.Gate, for languages other than that of
	// contract.Gate.Reason.
	gates map[string]string
}

// refusalTexts are keyed by primary language subtag, with the keys of localizedTexts.
func refusalTexts() map[string]*refusalText {
	return map[string]*refusalText{
		"en": {
			noAgents:      "no agent is registered here yet",
			noneUsable:    "you may not use any agent here: ask the operator for access",
			notEntitled:   "no agent that you may use serves this request: ask for something else, or ask the operator for access to more agents",
			gated:         "%s fits the request but may not take it: %s",
			gatedHidden:   "the agents that fit the request may not take it",
			namedHidden:   "the request names the agent %s, which is no agent that you may use: name another, or leave agent_id out",
			namedUnfit:    "the request names the agent %s, which does not serve it: leave agent_id out, or ask for one of %s",
			severalTasks:  "the request asks for several things%s, and requests are not split here: send one request for each",
			nothingFits:   "no agent here serves such a request",
			noneServes:    "no agent that you may use serves this request",
			asksNothing:   "the request asks for nothing yet",
			nearest:       "; %s is the nearest",
			askFor:        ": ask for one of %s",
			unclear:       "it is not clear enough what is to be done",
			unclearIntent: "it is not clear enough that the request asks for %s",
			describe:      ": describe it more exactly, or ask for one of %s",
			manyAgents:    "several agents serve %s, each for its own domains: name one of %s",
			manyIntents:   "the request can be understood in several ways: say which of these is meant: %s",
			twoIntents:    "the request can mean %s or %s: say which one is meant",
			tooLong:       "the request is too long: shorten it to about %d characters",
			noDomain:      "the request names no subject that is served here: name one of %s",
			noIntent:      "it is not clear what is to be done: ask for one of %s",
			stepSeparator: "; ", nameSeparator: ", ", moreNames: "%s and %d more", parentheses: " (%s)",
		},
		"pt": {
			noAgents:      "ainda não há nenhum agente registrado aqui",
			noneUsable:    "você não pode usar nenhum agente aqui: peça acesso ao operador",
			notEntitled:   "nenhum agente que você pode usar atende a este pedido: peça outra coisa, ou peça ao operador acesso a mais agentes",
			gated:         "%s atende a este tipo de pedido, mas não pode aceitá-lo: %s",
			gatedHidden:   "os agentes que atendem a este tipo de pedido não podem aceitá-lo",
			namedHidden:   "o pedido indica o agente %s, que não é um agente que você pode usar: indique outro, ou omita agent_id",
			namedUnfit:    "o pedido indica o agente %s, que não o atende: omita agent_id, ou peça uma destas intenções: %s",
			severalTasks:  "o pedido contém várias tarefas%s, e aqui os pedidos não são divididos: envie um pedido para cada uma",
			nothingFits:   "nada do que se atende aqui corresponde ao pedido",
			noneServes:    "nenhum agente que você pode usar atende a este pedido",
			asksNothing:   "o pedido ainda não pede nada",
			nearest:       "; o mais próximo é %s",
			askFor:        ": peça uma destas intenções: %s",
			unclear:       "não está claro o suficiente o que deve ser feito",
			unclearIntent: "não está claro o suficiente que o pedido seja %s",
			describe:      ": descreva-o com mais exatidão, ou peça uma destas intenções: %s",
			manyAgents:    "vários agentes atendem %s, cada um nos seus próprios domínios: indique um destes: %s",
			manyIntents:   "o pedido pode ser entendido de várias formas: diga qual destas é a certa: %s",
			twoIntents:    "o pedido pode significar %s ou %s: diga qual é o certo",
			tooLong:       "o pedido é longo demais: reduza-o a cerca de %d caracteres",
			noDomain:      "o pedido não indica nenhum assunto que se atende aqui: indique um destes: %s",
			noIntent:      "não está claro o que deve ser feito: peça uma destas intenções: %s",
			stepSeparator: "; ", nameSeparator: ", ", moreNames: "%s e mais %d", parentheses: " (%s)",
			gates: map[string]string{
				"entitlement": "falta acesso a esse agente", "state": "não está disponível no momento", "scopes": "faltam permissões",
				"tenant": "não atende à sua organização", "data_classes": "faltam dados exigidos no pedido",
				"accepts_data_classes": "o pedido contém dados que ele não aceita",
				"threshold":            "o pedido corresponde pouco a ele", "confidence": "o pedido não foi entendido com segurança suficiente",
			},
		},
		"es": {
			noAgents:      "aquí todavía no hay ningún agente registrado",
			noneUsable:    "usted no puede usar ningún agente aquí: pida acceso al operador",
			notEntitled:   "ningún agente que usted puede usar atiende esta solicitud: pida otra cosa, o pida al operador acceso a más agentes",
			gated:         "%s atiende este tipo de solicitud, pero no puede aceptarla: %s",
			gatedHidden:   "los agentes que atienden este tipo de solicitud no pueden aceptarla",
			namedHidden:   "la solicitud indica el agente %s, que no es un agente que usted pueda usar: indique otro, u omita agent_id",
			namedUnfit:    "la solicitud indica el agente %s, que no la atiende: omita agent_id, o pida una de estas intenciones: %s",
			severalTasks:  "la solicitud contiene varias tareas%s, y aquí las solicitudes no se dividen: envíe una solicitud para cada una",
			nothingFits:   "nada de lo que se atiende aquí corresponde a la solicitud",
			noneServes:    "ningún agente que usted puede usar atiende esta solicitud",
			asksNothing:   "la solicitud todavía no pide nada",
			nearest:       "; lo más cercano es %s",
			askFor:        ": pida una de estas intenciones: %s",
			unclear:       "no queda suficientemente claro qué debe hacerse",
			unclearIntent: "no queda suficientemente claro que la solicitud sea %s",
			describe:      ": descríbala con más exactitud, o pida una de estas intenciones: %s",
			manyAgents:    "varios agentes atienden %s, cada uno en sus propios dominios: indique uno de estos: %s",
			manyIntents:   "la solicitud puede entenderse de varias maneras: diga cuál de estas es la correcta: %s",
			twoIntents:    "la solicitud puede significar %s o %s: diga cuál es la correcta",
			tooLong:       "la solicitud es demasiado larga: redúzcala a unos %d caracteres",
			noDomain:      "la solicitud no indica ningún tema que se atienda aquí: indique uno de estos: %s",
			noIntent:      "no queda claro qué debe hacerse: pida una de estas intenciones: %s",
			stepSeparator: "; ", nameSeparator: ", ", moreNames: "%s y %d más", parentheses: " (%s)",
			gates: map[string]string{
				"entitlement": "falta acceso a ese agente", "state": "no está disponible en este momento", "scopes": "faltan permisos",
				"tenant": "no atiende a su organización", "data_classes": "faltan datos exigidos en la solicitud",
				"accepts_data_classes": "la solicitud contiene datos que no acepta",
				"threshold":            "la solicitud le corresponde poco", "confidence": "la solicitud no se entendió con suficiente seguridad",
			},
		},
		"zh": {
			noAgents:      "这里还没有注册任何智能体",
			noneUsable:    "您在这里不能使用任何智能体：请向运营者申请权限",
			notEntitled:   "您可以使用的智能体都不能处理此请求：请提出其他请求，或向运营者申请更多智能体的权限",
			gated:         "%s 适合此请求，但不能接受它：%s",
			gatedHidden:   "适合此请求的智能体不能接受它",
			namedHidden:   "请求指定了智能体 %s，但它不是您可以使用的智能体：请指定其他智能体，或省略 agent_id",
			namedUnfit:    "请求指定了智能体 %s，但它不处理此请求：请省略 agent_id，或请求以下意图之一：%s",
			severalTasks:  "此请求包含多项任务%s，而这里不拆分请求：请为每项任务单独发送请求",
			nothingFits:   "这里没有适合此请求的服务",
			noneServes:    "您可以使用的智能体都不能处理此请求",
			asksNothing:   "此请求尚未提出任何要求",
			nearest:       "；最接近的是 %s",
			askFor:        "：请求以下意图之一：%s",
			unclear:       "不够清楚要做什么",
			unclearIntent: "不够清楚此请求是否为 %s",
			describe:      "：请更准确地描述，或请求以下意图之一：%s",
			manyAgents:    "有多个智能体处理 %s，各自负责不同的领域：请指明其中一个领域：%s",
			manyIntents:   "此请求可以有多种理解：请说明是以下哪一种：%s",
			twoIntents:    "此请求可能是指 %s 或 %s：请说明是哪一个",
			tooLong:       "此请求过长：请缩短到约 %d 个字符",
			noDomain:      "此请求没有提到这里所服务的主题：请指明以下之一：%s",
			noIntent:      "不清楚要做什么：请求以下意图之一：%s",
			stepSeparator: "；", nameSeparator: "、", moreNames: "%s 等，另有 %d 个", parentheses: "（%s）",
			gates: map[string]string{
				"entitlement": "您没有使用该智能体的权限", "state": "目前不可用", "scopes": "缺少权限",
				"tenant": "不为您的组织服务", "data_classes": "请求中缺少所需的数据",
				"accepts_data_classes": "请求包含它不接受的数据",
				"threshold":            "与此请求的匹配度不足", "confidence": "对此请求的理解不够确定",
			},
		},
	}
}

// joinNames lists the first names and the number of the others.
func (w *refusalText) joinNames(names []string) string {
	text := strings.Join(names[:min(len(names), maxListedNames)], w.nameSeparator)
	if n := len(names) - maxListedNames; n > 0 {
		text = fmt.Sprintf(w.moreNames, text, n)
	}
	return text
}

// joinGates states which gates fail, each text once.
func (w *refusalText) joinGates(gates []contract.Gate) string {
	reasons := make([]string, 0, len(gates))
	for _, g := range gates {
		text, ok := w.gates[g.Gate]
		if !ok {
			text = g.Reason
		}
		if !slices.Contains(reasons, text) {
			reasons = append(reasons, text)
		}
	}
	return strings.Join(reasons, w.stepSeparator)
}

package lexical_test

import (
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

// officeCorpus is a realistic registry: a few intents with a few examples in several languages, and
// keywords.
func officeCorpus() lexical.Corpus {
	return lexical.Corpus{
		Intents: []lexical.IntentDoc{
			{
				Name: "code_review", Keywords: []string{"pylint", "pull request", "PR"},
				Examples: []string{
					"review my pull request", "check this function for bugs", "is this code safe to merge",
					"revise este código", "verifique os erros desta função", "revisa este código", "busca errores en esta función",
					"审查代码", "检查这个函数的错误", "コードをレビューして", "проверь этот код",
				},
			},
			{
				Name: "doc_answering", Keywords: []string{"manual", "runbook"},
				Examples: []string{
					"what do the docs say about retries", "how do I configure the service", "where is the deployment guide",
					"o que diz a documentação sobre retentativas", "como configuro o serviço", "qué dice la documentación sobre los reintentos",
					"文档里怎么说重试", "ドキュメントを検索", "что сказано в документации",
				},
			},
			{
				Name: "cost_analysis", Keywords: []string{"invoice", "fatura", "factura", "账单"},
				Examples: []string{
					"analyse our cloud costs", "why did the bill go up last month", "which team spends most",
					"analise o custo da nuvem", "por que a conta subiu", "analiza el gasto de la nube", "por qué subió la cuenta",
					"分析云成本", "クラウドの費用を分析", "проанализируй расходы",
				},
			},
			{Name: "bookMeetingRoom", Examples: []string{"book a room for tomorrow", "reserve uma sala", "reserva una sala", "预订会议室"}},
		},
		Domains: []string{"python", "go", "azure", "kb_internal", "docs", "财务"},
	}
}

// TestClassify_Languages checks requests and other texts in the languages of the registry and in
// others.
func TestClassify_Languages(t *testing.T) {
	m := lexical.Train(officeCorpus())
	for intent, texts := range map[string][]string{
		"code_review": {
			"Could you review my pull request, please?", "please check the function below for bugs", "Is this code safe to merge?",
			"CODE REVIEW!!!", "reviewing code", "there are bugs in this function, check it", "run pylint and review", "the PR needs a check",
			"Por favor, revise este código para mim", "revise o codigo", "Verifique os erros da função", "VERIFIQUE OS ERROS DESTA FUNÇÃO",
			"¿Puedes revisar este código?", "Busca los errores de esta función", "revisa mi código por favor",
			"请审查代码", "请帮我审查这段代码", "请检查这个函数的错误", "コードをレビューしてください", "Проверь этот код, пожалуйста",
		},
		"doc_answering": {
			"What do the docs say about retries?", "how can I configure this service", "Where's the deployment guide?", "doc answering",
			"does the runbook say where the guide is", "O que a documentação diz sobre retentativas?", "como eu configuro este serviço",
			"¿Qué dice la documentación sobre reintentos?", "文档里怎么说重试的", "ドキュメントを検索してください", "Что сказано в документации?",
		},
		"cost_analysis": {
			"Analyse our cloud costs", "analyze the cost of our cloud", "Why did the bill go up so much last month?", "cost analysis",
			"which of the teams spends the most", "explain the costs on this invoice", "analise o custo da nuvem, por favor",
			"Por que a nossa conta subiu?", "explique a fatura e o custo", "Analiza el gasto de la nube", "¿Por qué subió la cuenta?",
			"分析一下云成本", "クラウドの費用を分析してください", "Проанализируй расходы",
		},
		"bookMeetingRoom": {
			"book a room for tomorrow", "I want to book the meeting room", "reserve uma sala para amanhã", "¿Me reservas una sala?", "请预订会议室", "bookMeetingRoom",
		},
		contract.Unknown: {
			"", "tell me a joke", "What's the weather like in Lisbon?", "who won the football match", "good morning", "sing a song for me",
			"I love chocolate", "how old is the queen of England", "translate hello to French", "set an alarm for seven",
			"conte uma piada", "como está o tempo hoje", "quem ganhou o jogo ontem", "bom dia, tudo bem?",
			"cuéntame un chiste", "qué tiempo hace hoy en Madrid", "quién ganó el partido", "buenos días",
			"今天天气怎么样", "给我讲个笑话", "你好", "今日の天気は", "おはようございます", "расскажи анекдот", "какая сегодня погода",
			"احك لي نكتة", "מה מזג האוויר היום", "मुझे एक चुटकुला सुनाओ", "날씨 어때", "raconte-moi une blague", "wie wird das Wetter",
		},
	} {
		for _, text := range texts {
			if got := m.Classify(text); got.Intent != intent {
				t.Errorf("%q: got %s with %v (%v), want %s", text, got.Intent, got.Confidence, got.Alternatives, intent)
			}
		}
	}
}

// TestClassify_DomainsInLanguages checks that domains are found in any script,
// in the order of the text.
func TestClassify_DomainsInLanguages(t *testing.T) {
	m := lexical.Train(officeCorpus())
	for text, want := range map[string]string{
		"review this Python and Go code":               "python go",
		"o custo no Azure, depois o código em PYTHON":  "azure python",
		"¿cuánto cuesta Azure?":                        "azure",
		"用python写的":                                    "python",
		"财务部门的azure账单":                                 "财务 azure",
		"коd на python":                                "python",
		"the internal KB, not the docs":                "kb_internal docs",
		"an internal matter":                           "",
		"golang, pythonic and azured":                  "",
		"Go. go GO":                                    "go",
		"`azure` is quoted, python_module is not":      "azure python",
		"see https://docs.example/azure/page for more": "docs azure",
	} {
		if got := strings.Join(m.Classify(text).Domains, " "); got != want {
			t.Errorf("%q: got domains %q, want %q", text, got, want)
		}
	}
}

// TestStopWords checks that any number of stop words is not evidence.
func TestStopWords(t *testing.T) {
	m := lexical.Train(officeCorpus())
	for _, text := range []string{
		"what do you do with this and that, and how is it for you", "please could you", "how do I", "which of the",
		"o que é isso e como está", "por que não", "de la que no por las", "para mí y para ti", "我的这个", "的了吗",
	} {
		if got := m.Classify(text); got.Intent != contract.Unknown || got.Confidence >= lexical.MinActionConfidence {
			t.Errorf("%q: got %s with %v, want unknown (%v)", text, got.Intent, got.Confidence, got.Alternatives)
		}
	}
}

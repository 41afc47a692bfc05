package demo

import (
	_ "embed"
	"encoding/json"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// The inputs of the requests. They contain real mistakes.
var (
	//go:embed data/etl_job.py
	etlJob string
	//go:embed data/notebook.py
	notebook string
	//go:embed data/azure_costs.csv
	azureCosts string
	//go:embed data/costes_azure.csv
	costesAzure string
)

// Step is one request of the demo.
type Step struct {
	Title       string
	Explanation string
	Request     contract.Request
	// Status and Agents are the expected outcome with the lexical classifier, which is
	// deterministic. With a model the outcome may differ.
	Status contract.Status
	Agents []string
	// ChosenIntent is the option to choose if the step answers the clarification that
	// the step before asked for, else "".
	ChosenIntent string
}

// ChooseOption makes the request answer the clarification in resp: it chooses the
// option of ChosenIntent. It reports whether resp has that option.
func (s *Step) ChooseOption(resp *contract.Response) bool {
	if resp == nil || resp.Status != contract.StatusClarify {
		return false
	}
	for _, o := range resp.Data.Options {
		if o.Intent == s.ChosenIntent {
			s.Request.Clarification = &contract.ClarificationChoice{RequestID: resp.RequestID, OptionID: o.ID}
			return true
		}
	}
	return false
}

// Steps returns the requests of the demo in order. If withModel is true, their
// explanations are about classification by a model.
func Steps(withModel bool) []Step {
	steps := make([]Step, 0, len(stepTemplates))
	for _, t := range stepTemplates {
		req := contract.Request{
			Content:  contract.Content{Prompt: t.prompt},
			Metadata: contract.Metadata{Locale: t.locale},
			Options:  contract.Options{DryRun: t.dryRun, Explain: t.dryRun},
		}
		if t.fallback != "" {
			req.Options.Fallback = &t.fallback
		}
		for name, text := range t.inputs {
			raw, _ := strictjson.Marshal(text) // encoding a string cannot fail
			if req.Content.Inputs == nil {
				req.Content.Inputs = make(map[string]json.RawMessage, len(t.inputs))
			}
			req.Content.Inputs[name] = raw
		}
		explanation := t.explanation
		if withModel && t.modelExplanation != "" {
			explanation = t.modelExplanation
		}
		steps = append(steps, Step{
			Title: t.title, Explanation: explanation, Request: req, Status: t.status, Agents: t.agents, ChosenIntent: t.chosenIntent,
		})
	}
	return steps
}

// stepTemplate is the source of a Step. modelExplanation replaces explanation if a
// model classifies and the text differs.
type stepTemplate struct {
	title, explanation, modelExplanation string
	locale, prompt                       string
	inputs                               map[string]string
	fallback, chosenIntent               string
	dryRun                               bool
	status                               contract.Status
	agents                               []string
}

var stepTemplates = []stepTemplate{
	{
		title:       "One intent, one domain, one agent",
		explanation: "The intent is code_review, the domain python. Only quality_agent declares both: 0.5 + 0.3 = 0.8, above the threshold of 0.65.",
		locale:      "en",
		prompt:      "Please do a code review of this python script before we merge it",
		inputs:      map[string]string{"code": etlJob, "file": "etl_job.py"},
		status:      contract.StatusCompleted,
		agents:      []string{QualityAgent},
	},
	{
		title:            "The same agent, asked in Portuguese",
		explanation:      "The examples of the registry are in four languages, so the classifier needs neither a model nor a translation. The agent applies its rules for notebooks.",
		modelExplanation: "A model needs no translation, and sees only intents and domains that the registry declares. The agent applies its rules for notebooks.",
		locale:           "pt-BR",
		prompt:           "Revise este notebook Databricks e aponte custo desnecessário",
		inputs:           map[string]string{"code": notebook, "file": "notebook.py"},
		status:           contract.StatusCompleted,
		agents:           []string{QualityAgent},
	},
	{
		title:       "A question about the documentation",
		explanation: "rag_agent searches the documents of this project and quotes the section with its source.",
		locale:      "en",
		prompt:      "What do the docs say about how ties between agents are broken?",
		status:      contract.StatusCompleted,
		agents:      []string{RAGAgent},
	},
	{
		title:       "A cost analysis, asked in Spanish",
		explanation: "The agent adds up a Spanish export, with semicolons and decimal commas.",
		locale:      "es",
		prompt:      "Analiza los costes de Azure de este trimestre y dime por qué subió la factura",
		inputs:      map[string]string{"csv": costesAzure},
		status:      contract.StatusCompleted,
		agents:      []string{BillingAgent},
	},
	{
		title:       "Two requests in one: fan-out to two agents",
		explanation: "Each half names its own intent, so the router splits the request and matches each subtask. The tasks run in parallel, and one answer contains both results.",
		locale:      "en",
		prompt:      "Review this python code and do a cost analysis of our azure bill",
		inputs:      map[string]string{"code": etlJob, "file": "etl_job.py", "csv": azureCosts},
		status:      contract.StatusCompleted,
		agents:      []string{QualityAgent, BillingAgent},
	},
	{
		title:            "Asked in Chinese, with the code in the prompt",
		explanation:      "The lexical classifier ignores code blocks, because they are material and not part of the question.",
		modelExplanation: "The model reads the prompt, including the code, with personal data and secrets masked. The agent receives the original.",
		locale:           "zh",
		prompt:           "请审查这段 Python 代码，看看有什么问题\n```python\nimport os\n\ndef total(items, seen=[]):\n    for item in items:\n        if item.price == None:\n            continue\n        seen.append(item.price)\n    return sum(seen)\n```",
		status:           contract.StatusCompleted,
		agents:           []string{QualityAgent},
	},
	{
		title:            "An ambiguous request: the router asks",
		explanation:      "Better notebooks are databricks_review, a better bill is cost_analysis. Both intents are about equally likely and belong to different agents, so the router asks for a clarification.",
		modelExplanation: "The request may be about notebooks or about the bill. With the lexical classifier the router asks for a clarification; a model usually decides for one.",
		locale:           "en",
		prompt:           "Make Databricks cheaper",
		inputs:           map[string]string{"csv": azureCosts, "code": notebook, "file": "notebook.py"},
		status:           contract.StatusClarify,
	},
	{
		title:        "The answer to the clarification",
		explanation:  "The same request with the chosen option. It is not classified again, but matched like every other request.",
		locale:       "en",
		prompt:       "Make Databricks cheaper",
		inputs:       map[string]string{"csv": azureCosts, "code": notebook, "file": "notebook.py"},
		chosenIntent: "cost_analysis",
		status:       contract.StatusCompleted,
		agents:       []string{BillingAgent},
	},
	{
		title:            "No agent: fallback policy A, a model answers",
		explanation:      "No agent declares such an intent, and the registry sets fallback policy A. No model is configured, and the answer states that; set GEMINI_API_KEY to see an answer of a model.",
		modelExplanation: "No agent declares such an intent, and the registry sets fallback policy A: the model gives a short answer and performs no action.",
		locale:           "en",
		prompt:           "What is the difference between a left join and an inner join?",
		status:           contract.StatusCompleted,
	},
	{
		title:       "No agent: fallback policy B, the router refuses",
		explanation: "Each request may choose its fallback policy. With policy B the router answers that the request is not supported, and lists the intents that are.",
		locale:      "en",
		prompt:      "What will the weather be like in Lisbon tomorrow?",
		fallback:    capabilities.FallbackUnsupported,
		status:      contract.StatusUnsupported,
	},
	{
		title:       "A dry run: only the decision",
		explanation: "No task is created and no agent is called, so regression tests of the routing can run this way.",
		locale:      "en",
		prompt:      "Why did our Databricks costs go up on Azure?",
		dryRun:      true,
		status:      contract.StatusAccepted,
		agents:      []string{BillingAgent},
	},
}

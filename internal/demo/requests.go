package demo

import (
	_ "embed"
	"encoding/json"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// The material the requests bring along. It has real mistakes in it.
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

// Step is one request of the demo, what it shows and how it ends.
type Step struct {
	Title   string
	Why     string
	Request contract.Request
	// Want and Agents, who is chosen, are how the step ends with the lexical
	// classifier, every time. A model decides for itself.
	Want   contract.Status
	Agents []string
	// Choose is the intent to choose where the step answers the question of the
	// step before; "" for a step of its own.
	Choose string
}

// Answer makes the step the answer to the question that asked is: it chooses the
// option of the intent. It reports whether there is such an option.
func (s *Step) Answer(asked *contract.Response) bool {
	if asked == nil || asked.Status != contract.StatusClarify {
		return false
	}
	for _, o := range asked.Data.Options {
		if o.Intent == s.Choose {
			s.Request.Clarification = &contract.ClarificationChoice{RequestID: asked.RequestID, OptionID: o.ID}
			return true
		}
	}
	return false
}

// Requests returns the steps of the demo, in the order they are told. withModel
// is whether a model classifies: then their texts are about that.
func Requests(withModel bool) []Step {
	steps := make([]Step, 0, len(script))
	for _, s := range script {
		req := contract.Request{
			Content:  contract.Content{Prompt: s.prompt},
			Metadata: contract.Metadata{Locale: s.locale},
			Options:  contract.Options{DryRun: s.dryRun},
		}
		if s.fallback != "" {
			req.Options.Fallback = &s.fallback
		}
		for name, text := range s.inputs {
			raw, _ := strictjson.Marshal(text) // a string cannot fail
			if req.Content.Inputs == nil {
				req.Content.Inputs = make(map[string]json.RawMessage, len(s.inputs))
			}
			req.Content.Inputs[name] = raw
		}
		why := s.why
		if withModel && s.whyModel != "" {
			why = s.whyModel
		}
		steps = append(steps, Step{Title: s.title, Why: why, Request: req, Want: s.want, Agents: s.agents, Choose: s.choose})
	}
	return steps
}

// scripted is a step as it is written down.
type scripted struct {
	title, why, locale, prompt string
	whyModel                   string // why, where a model classifies; "" = the same
	inputs                     map[string]string
	fallback, choose           string
	dryRun                     bool
	want                       contract.Status
	agents                     []string
}

var script = []scripted{
	{
		title:  "One intent, one domain, one agent",
		why:    "The request is a code_review of python. Only quality_agent declares both: 0.5 + 0.3 = 0.8, above the threshold of 0.65.",
		locale: "en",
		prompt: "Please do a code review of this python script before we merge it",
		inputs: map[string]string{"code": etlJob, "file": "etl_job.py"},
		want:   contract.StatusCompleted,
		agents: []string{QualityAgent},
	},
	{
		title:    "The same agent, asked in Portuguese",
		why:      "The registry's examples are in four languages; the classifier needs no model and no translation. The notebook rules apply.",
		whyModel: "A model needs no translation, and sees only intents and domains that the registry declares. The notebook rules apply.",
		locale:   "pt-BR",
		prompt:   "Revise este notebook Databricks e aponte custo desnecessário",
		inputs:   map[string]string{"code": notebook, "file": "notebook.py"},
		want:     contract.StatusCompleted,
		agents:   []string{QualityAgent},
	},
	{
		title:  "A question to the documents",
		why:    "rag_agent searches this project's own documents and quotes the passage with its source.",
		locale: "en",
		prompt: "What do the docs say about how ties between agents are broken?",
		want:   contract.StatusCompleted,
		agents: []string{RAGAgent},
	},
	{
		title:  "A cost analysis, asked in Spanish",
		why:    "Semicolons, decimal commas and Spanish column names: the agent works that out, and adds up exactly.",
		locale: "es",
		prompt: "Analiza los costes de Azure de este trimestre y dime por qué subió la factura",
		inputs: map[string]string{"csv": costesAzure},
		want:   contract.StatusCompleted,
		agents: []string{BillingAgent},
	},
	{
		title:  "Two requests in one: two agents at a time",
		why:    "Each half names an intent of its own, so each is matched by itself; the tasks run in parallel and come back as one answer.",
		locale: "en",
		prompt: "Review this python code and do a cost analysis of our azure bill",
		inputs: map[string]string{"code": etlJob, "file": "etl_job.py", "csv": azureCosts},
		want:   contract.StatusCompleted,
		agents: []string{QualityAgent, BillingAgent},
	},
	{
		title:    "Asked in Chinese, with the code in the prompt",
		why:      "What stands in a code block is material: the lexical classifier does not read it.",
		whyModel: "The model reads the prompt, code included, with personal data and secrets masked; the agent gets it as it is.",
		locale:   "zh",
		prompt:   "请审查这段 Python 代码，看看有什么问题\n```python\nimport os\n\ndef total(items, seen=[]):\n    for item in items:\n        if item.price == None:\n            continue\n        seen.append(item.price)\n    return sum(seen)\n```",
		want:     contract.StatusCompleted,
		agents:   []string{QualityAgent},
	},
	{
		title:    "Two readings that are as good: the router asks",
		why:      "To optimize the notebooks is databricks_review, to look into the bill is cost_analysis; they belong to different agents, and the words say no more. The router does not toss a coin.",
		whyModel: "Is it about the notebooks, or about the bill? The lexical classifier cannot tell and the router would ask; a model usually settles for one.",
		locale:   "en",
		prompt:   "Optimize our Databricks costs",
		inputs:   map[string]string{"csv": azureCosts, "code": notebook, "file": "notebook.py"},
		want:     contract.StatusClarify,
	},
	{
		title:  "The caller's choice",
		why:    "The same request again, with the option that was meant: nothing is classified anew, but the arithmetic decides as ever.",
		locale: "en",
		prompt: "Optimize our Databricks costs",
		inputs: map[string]string{"csv": azureCosts, "code": notebook, "file": "notebook.py"},
		choose: "cost_analysis",
		want:   contract.StatusCompleted,
		agents: []string{BillingAgent},
	},
	{
		title:    "Nobody can do this: a model may answer",
		why:      "No agent declares anything like it, and fallback policy A is the registry's. There is no model here, so the answer is honest about that; set GEMINI_API_KEY to see one.",
		whyModel: "No agent declares anything like it, and fallback policy A is the registry's: the model answers itself, briefly, and does not act.",
		locale:   "en",
		prompt:   "What is the difference between a left join and an inner join?",
		want:     contract.StatusCompleted,
	},
	{
		title:    "Nobody can do this, and no model shall",
		why:      "This request asks for policy B, as every request may: the router says that it is not supported, and what could be asked for instead.",
		locale:   "en",
		prompt:   "What will the weather be like in Lisbon tomorrow?",
		fallback: capabilities.FallbackUnsupported,
		want:     contract.StatusUnsupported,
	},
	{
		title:  "A dry run: the decision and nothing else",
		why:    "No task is made and no agent hears of it; a regression test of the routing can run this way.",
		locale: "en",
		prompt: "Why did our Databricks costs go up on Azure?",
		dryRun: true,
		want:   contract.StatusAccepted,
		agents: []string{BillingAgent},
	},
}

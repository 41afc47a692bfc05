package contract

// MaxReplyExcerpt is the maximum size of ModelCall.Reply in bytes.
const MaxReplyExcerpt = 2 << 10

// ModelUse describes the model calls for one classification or answer.
type ModelUse struct {
	Provider      string      `json:"provider"`       // gemini, genai or openai
	Model         string      `json:"model"`          // as configured
	PromptVersion string      `json:"prompt_version"` // version of the prompt template
	Tokens        Tokens      `json:"tokens"`         // of all calls
	Calls         []ModelCall `json:"calls"`          // in order; empty for a cached result
}

// Tokens are token counts as reported by the provider.
type Tokens struct {
	Input    int `json:"input"`
	Output   int `json:"output"`            // including Thinking
	Thinking int `json:"thinking,omitzero"` // part of Output
}

// Add adds counts.
func (t *Tokens) Add(more Tokens) {
	t.Input += more.Input
	t.Output += more.Output
	t.Thinking += more.Thinking
}

// CallPurpose is the purpose of a model call.
type CallPurpose string

// Purposes of a ModelCall.
const (
	PurposeClassify   CallPurpose = "classify"
	PurposeRepair     CallPurpose = "repair"      // the reply was invalid: ask again with the error
	PurposeMoreTokens CallPurpose = "more_tokens" // the reply was cut off: ask again with a larger limit
	PurposeAnswer     CallPurpose = "answer"      // fallback policy A
	PurposeSummarize  CallPurpose = "summarize"   // of the results of several agents
	PurposePlan       CallPurpose = "plan"        // of an orchestration
	PurposeVerify     CallPurpose = "verify"      // of an orchestration
)

// OutcomeOK is the outcome of a ModelCall with a usable reply. Other outcomes
// are reason codes such as llm_timeout.
const OutcomeOK = "ok"

// ModelCall is one call to a model, including retries.
type ModelCall struct {
	Purpose   CallPurpose `json:"purpose"`
	Outcome   string      `json:"outcome"`
	Detail    string      `json:"detail,omitempty"` // error of the reply or the model
	Reply     string      `json:"reply,omitempty"`  // excerpt
	Tokens    Tokens      `json:"tokens"`
	LatencyMS float64     `json:"latency_ms"`
}

package contract

// MaxReplyExcerpt is how much of a model's reply a ModelCall holds, in bytes.
const MaxReplyExcerpt = 2 << 10

// ModelUse is how a model was used for one classification or one answer.
type ModelUse struct {
	Provider      string      `json:"provider"`       // gemini, genai or openai
	Model         string      `json:"model"`          // as configured
	PromptVersion string      `json:"prompt_version"` // of the template the model was asked with
	Tokens        Tokens      `json:"tokens"`         // of all calls together
	Calls         []ModelCall `json:"calls"`          // in order; empty for an answer out of the cache
}

// Tokens counts what a model read and wrote, as its provider says.
type Tokens struct {
	Input    int `json:"input"`
	Output   int `json:"output"`            // thinking included
	Thinking int `json:"thinking,omitzero"` // of Output
}

// Add adds the counts of more.
func (t *Tokens) Add(more Tokens) {
	t.Input += more.Input
	t.Output += more.Output
	t.Thinking += more.Thinking
}

// CallPurpose says what a model was asked for.
type CallPurpose string

// The purposes of a ModelCall.
const (
	PurposeClassify   CallPurpose = "classify"
	PurposeRepair     CallPurpose = "repair"      // the reply was not valid: once more, with the error
	PurposeMoreTokens CallPurpose = "more_tokens" // the reply was cut off: once more, with a larger budget
	PurposeAnswer     CallPurpose = "answer"      // fallback policy A
)

// OutcomeOK is the outcome of a ModelCall whose reply was used; any other
// outcome is a reason code such as llm_timeout.
const OutcomeOK = "ok"

// ModelCall is one call to a model, retries included.
type ModelCall struct {
	Purpose   CallPurpose `json:"purpose"`
	Outcome   string      `json:"outcome"`
	Detail    string      `json:"detail,omitempty"` // what is wrong with the reply, or with the model
	Reply     string      `json:"reply,omitempty"`  // its beginning
	Tokens    Tokens      `json:"tokens"`
	LatencyMS float64     `json:"latency_ms"`
}

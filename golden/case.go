package golden

import (
	"errors"
	"maps"
	"slices"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Splits of a data set. A case without a split belongs to none.
const (
	Train      = "train"      // for fitting thresholds
	Validation = "validation" // held out
	Test       = "test"       // held out
)

// Case is a request and its expected routing outcome.
type Case struct {
	ID         string     `yaml:"id" json:"id"`
	Input      string     `yaml:"input" json:"input"`
	History    []Message  `yaml:"history" json:"history" validate:"dive"` // oldest first
	Tenant     string     `yaml:"tenant" json:"tenant"`                   // of the caller; "" = none
	Expect     Expect     `yaml:"expect" json:"expect"`
	Alternates [][]string `yaml:"alternates" json:"alternates"` // sets of agents that are as good as Expect.Agents
	Split      string     `yaml:"split" json:"split" validate:"omitempty,oneof=train validation test"`
	Tags       []string   `yaml:"tags" json:"tags"`
	// LLM is the model's replies, in order of the calls; the last one repeats.
	// They need not be JSON. A case with replies uses no other model.
	LLM ScriptedReplies `yaml:"llm" json:"llm"`
	// KnownFailure is the reason why the case fails without a model; "" if it
	// passes. A run with a model ignores it, unless the case has replies.
	KnownFailure string `yaml:"known_failure" json:"known_failure"`

	File string `yaml:"-" json:"-"` // position of the case
	Line int    `yaml:"-" json:"-"`
}

// Message is one earlier message of the conversation.
type Message struct {
	Role    string `yaml:"role" json:"role" validate:"oneof=user assistant"`
	Content string `yaml:"content" json:"content"`
}

// Expect is the expected routing outcome. Fields that are not set are not
// checked.
type Expect struct {
	Outcome Outcome  `yaml:"outcome" json:"outcome,omitempty" validate:"omitempty,oneof=dispatch clarify fallback_a fallback_b fallback_c fallback"`
	Agents  []string `yaml:"agents" json:"agents,omitzero"` // chosen agents in any order; empty but not absent = none
	Intent  string   `yaml:"intent" json:"intent,omitempty"`
	Domains []string `yaml:"domains" json:"domains,omitzero"` // in any order
	Reason  string   `yaml:"reason" json:"reason,omitempty"`  // see Actual.Reason
}

// ScriptedReplies are the replies of a scripted model. In files a single reply
// may be a plain string.
type ScriptedReplies []string

// UnmarshalJSON accepts a string or an array of strings.
func (r *ScriptedReplies) UnmarshalJSON(data []byte) error {
	var one string
	if strictjson.Unmarshal(data, &one) == nil {
		*r = ScriptedReplies{one}
		return nil
	}
	var list []string
	if err := strictjson.Unmarshal(data, &list); err != nil {
		return errors.New("must be a string, or an array of strings")
	}
	*r = list
	return nil
}

// dryRunRequest returns the request of the case as a dry run, so that no agent
// is called.
func (c *Case) dryRunRequest() *contract.Request {
	req := &contract.Request{Content: contract.Content{Prompt: c.Input}, Options: contract.Options{DryRun: true, Explain: true}}
	for _, t := range c.History {
		req.History = append(req.History, contract.Turn{Role: t.Role, Content: t.Content})
	}
	return req
}

// caller returns the caller of the case, who may use every agent of its tenant.
func (c *Case) caller() *contract.Caller {
	return &contract.Caller{Subject: "golden", Tenant: c.Tenant, AllScopes: true, AllAgents: true}
}

// DeclaredNames are the names that cases may use, sorted.
type DeclaredNames struct {
	Agents, Intents, Domains []string
	// Granted are the agents that may register themselves. Cases cannot use them.
	Granted []string
}

// NewDeclaredNames returns the names that any of the registries declares.
func NewDeclaredNames(registries ...*capabilities.Snapshot) *DeclaredNames {
	n := &DeclaredNames{Intents: []string{contract.Unknown}, Domains: []string{contract.Unknown}}
	for _, s := range registries {
		for _, a := range s.Catalogue.Agents {
			n.Agents = append(n.Agents, a.ID)
		}
		n.Intents = append(n.Intents, s.Catalogue.Intents...)
		n.Domains = append(n.Domains, s.Catalogue.Domains...)
		n.Granted = slices.AppendSeq(n.Granted, maps.Keys(s.Fleet.Grants))
	}
	for _, list := range []*[]string{&n.Agents, &n.Intents, &n.Domains, &n.Granted} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return n
}

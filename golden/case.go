package golden

import (
	"errors"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// The splits a case may be part of. Without a split it is part of none.
const (
	Train      = "train"      // thresholds are fitted on it
	Validation = "validation" // held out
	Test       = "test"       // held out
)

// Case is one request and what shall become of it.
type Case struct {
	ID         string     `yaml:"id" json:"id"`
	Input      string     `yaml:"input" json:"input"`
	History    []Message  `yaml:"history" json:"history"` // earlier turns, oldest first
	Expect     Expect     `yaml:"expect" json:"expect"`
	Alternates [][]string `yaml:"alternates" json:"alternates"` // sets of agents that are as good as Expect.Agents
	Split      string     `yaml:"split" json:"split"`
	Tags       []string   `yaml:"tags" json:"tags"`
	// LLM is what the model replies, call by call, the last reply again and
	// again; it may be no JSON at all. A case with a script asks no other model.
	LLM ScriptedReplies `yaml:"llm" json:"llm"`

	File string `yaml:"-" json:"-"` // where the case stands
	Line int    `yaml:"-" json:"-"`
}

// Message is one earlier message of the conversation.
type Message struct {
	Role    string `yaml:"role" json:"role"` // user or assistant
	Content string `yaml:"content" json:"content"`
}

// Expect is what shall become of a request. Only what is named is checked.
type Expect struct {
	Outcome Outcome  `yaml:"outcome" json:"outcome,omitempty"`
	Agents  []string `yaml:"agents" json:"agents,omitzero"` // the chosen ones, in any order; empty, not absent = none
	Intent  string   `yaml:"intent" json:"intent,omitempty"`
	Domains []string `yaml:"domains" json:"domains,omitzero"` // in any order
	Reason  string   `yaml:"reason" json:"reason,omitempty"`  // see Got.Reason
}

// ScriptedReplies are what a scripted model says. One may be written without a list.
type ScriptedReplies []string

// UnmarshalJSON takes a string or an array of strings.
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

// request is what the router is asked: nothing is sent.
func (c *Case) request() *contract.Request {
	req := &contract.Request{Content: contract.Content{Prompt: c.Input}, Options: contract.Options{DryRun: true}}
	for _, t := range c.History {
		req.History = append(req.History, contract.Turn{Role: t.Role, Content: t.Content})
	}
	return req
}

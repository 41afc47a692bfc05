package teach

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// CheckExpected rejects expected agents that the registry does not have, and intents that none
// of them declares.
func CheckExpected(expected, intents []string, s *capabilities.Snapshot) error {
	var ids []string
	for _, a := range s.Entries() {
		ids = append(ids, a.ID)
	}
	for _, id := range expected {
		if id != NoAgent && !slices.Contains(ids, id) {
			return errors.New("--expect: " + explainAgent(id, ids, s.Fleet.Grants))
		}
	}
	return checkIntents(intents, expected, s)
}

// checkIntents rejects intents that no expected agent declares, and several of one agent.
func checkIntents(intents, expected []string, s *capabilities.Snapshot) error {
	var declared []string
	for _, id := range expected {
		if a := s.Entry(id); a != nil {
			declared = append(declared, a.Match.Intent...)
		}
	}
	for _, intent := range intents {
		if !slices.Contains(declared, intent) {
			return errors.New("--expect-intent: " + suggestChoice("intent of "+strings.Join(expected, " and "), intent, declared))
		}
	}
	for _, id := range expected {
		if named := intentsOf(s.Entry(id), intents); len(named) > 1 {
			return fmt.Errorf("--expect-intent: %s are intents of %s: name one of them", strings.Join(named, " and "), id)
		}
	}
	return nil
}

// intentsOf returns those of the intents that the agent declares.
func intentsOf(agent *contract.RegistryEntry, intents []string) []string {
	return slices.DeleteFunc(slices.Clone(intents), func(intent string) bool {
		return agent == nil || !slices.Contains(agent.Match.Intent, intent)
	})
}

// ExpectedAgents returns the agents that the last misroute with an expectation expects, or
// NoAgent if it expects no agent.
func ExpectedAgents(feedback []contract.Feedback) []string {
	last := lastExpectation(feedback)
	if last.ExpectedNone {
		return []string{NoAgent}
	}
	return last.ExpectedAgents
}

// ExpectedIntent returns the intent of the one agent of ExpectedAgents that is right, "" if the
// misroute names none.
func ExpectedIntent(feedback []contract.Feedback) string {
	return lastExpectation(feedback).ExpectedIntent
}

func lastExpectation(feedback []contract.Feedback) (last contract.Feedback) {
	for i := range feedback {
		if f := &feedback[i]; (len(f.ExpectedAgents) > 0 || f.ExpectedNone) && f.At.After(last.At) {
			last = *f
		}
	}
	return last
}

package visibility

import (
	"slices"

	"github.com/caprouter/caprouter/contract"
)

// filterErrors returns the tasks without what only operators may see of an error:
// the address of the agent and the beginning of its reply. It returns a new slice if
// it changes anything.
func (f *Filter) filterErrors(list []contract.TaskReport) []contract.TaskReport {
	if !f.hidesErrors(list) {
		return list
	}
	filtered := slices.Clone(list)
	for i := range filtered {
		t := &filtered[i]
		t.Error = withoutAddress(t.Error)
		t.FailedOver = slices.Clone(t.FailedOver)
		for k := range t.FailedOver {
			t.FailedOver[k].Error = withoutAddress(t.FailedOver[k].Error)
		}
	}
	return filtered
}

// hidesErrors reports whether the tasks contain something that the caller may not see
// because it is no operator.
func (f *Filter) hidesErrors(list []contract.TaskReport) bool {
	return !f.caller.SeesAll() && slices.ContainsFunc(list, func(t contract.TaskReport) bool {
		return hasAddress(t.Error) || slices.ContainsFunc(t.FailedOver, func(try contract.FailedAttempt) bool { return hasAddress(try.Error) })
	})
}

func hasAddress(e *contract.TaskError) bool { return e != nil && (e.Address != "" || e.Reply != "") }

func withoutAddress(e *contract.TaskError) *contract.TaskError {
	if !hasAddress(e) {
		return e
	}
	return &contract.TaskError{Code: e.Code, Detail: e.Detail}
}

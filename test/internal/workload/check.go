package workload

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// CheckResult is a check with its violations.
type CheckResult struct {
	Name       string
	Violations []string
}

// Violations returns the violations by the name of their check.
func Violations(checks []CheckResult) map[string][]string {
	found := map[string][]string{}
	for _, c := range checks {
		if len(c.Violations) > 0 {
			found[c.Name] = c.Violations
		}
	}
	return found
}

// RunChecks compares the recorded promises with the outcome.
func (l *Ledger) RunChecks() []CheckResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	return []CheckResult{
		{"accepted with 202, then lost or without an end", l.findLost()},
		{"a terminal response changed", l.findChanged()},
		{"two final events, or one that contradicts the response", l.requestsWhere(contradictsEvents)},
		{"two results of one subtask accepted by callback", l.findDoubleAccepted()},
		{"a task that is not idempotent was repeated", l.findRepeatedWork()},
		{"a result accepted by callback is missing in the response", l.findMissingResults()},
		{"a response contains a result that no agent sent", l.findInventedResults()},
		{"two requests with one Idempotency-Key", l.findAmbiguousKeys()},
		{"a callback was refused without reason", l.findRefusedCallbacks()},
		{"outcome_unknown of an agent that is idempotent", l.requestsWhere(hasWrongUnknown)},
		{"a cancelled request ended otherwise", l.requestsWhere(contradictsCancel)},
		{"a turn of a session whose agent did not get the turn before", l.noHistory},
		{"an unexpected answer", l.unexpected},
	}
}

func (l *Ledger) requestsWhere(wrong func(*acceptedRequest) bool) []string {
	var ids []string
	for _, id := range l.accepted {
		if wrong(l.requests[id]) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (l *Ledger) findLost() []string {
	ids := l.requestsWhere(func(p *acceptedRequest) bool { return p.notFound || p.answer == nil })
	for i, id := range ids {
		ids[i] = fmt.Sprintf("%s: %s", id, l.describeRequest(id))
	}
	return ids
}

// describeRequest lists what was recorded about a request.
func (l *Ledger) describeRequest(id string) string {
	p := l.requests[id]
	history := []string{"accepted"}
	for key, ids := range l.keys {
		if slices.Contains(ids, id) {
			history = append(history, key)
		}
	}
	for _, e := range l.executions {
		if e.request == id {
			history = append(history, "sent to "+e.agent)
		}
	}
	if p.notFound {
		history = append(history, "404")
	}
	return strings.Join(history, ", ")
}

// findChanged returns requests whose terminal response changed.
func (l *Ledger) findChanged() []string {
	ids := l.requestsWhere(func(p *acceptedRequest) bool { return p.changed != nil })
	for i, id := range ids {
		ids[i] = fmt.Sprintf("%s: %s, then %s", id, l.requests[id].raw, l.requests[id].changed)
	}
	return ids
}

// contradictsEvents also accepts the end of a request whose response a kill prevented from
// being recorded.
func contradictsEvents(p *acceptedRequest) bool {
	if p.unrecorded && p.finalEvents == 1 && p.finalStatus == contract.StatusFailed {
		return false
	}
	return p.finalEvents > 1 || p.finalEvents == 1 && p.answer != nil && p.finalStatus != p.answer.Status
}

// hasWrongUnknown reports whether the outcome of an idempotent agent is called unknown
// although the task could have been sent again. The response to a synchronous request
// that was interrupted names no tasks: their ids are its own.
func hasWrongUnknown(p *acceptedRequest) bool {
	if p.answer == nil {
		return false
	}
	isWrong := func(task, agent string, why *contract.TaskError) bool {
		return why != nil && why.Code == contract.TaskOutcomeUnknown && isIdempotent(agent) && task != p.id
	}
	return slices.ContainsFunc(p.answer.Tasks, func(t contract.TaskReport) bool {
		return isWrong(t.TaskID, t.AgentID, t.Error) ||
			slices.ContainsFunc(t.FailedOver, func(f contract.FailedAttempt) bool { return isWrong(f.TaskID, f.AgentID, f.Error) })
	})
}

func contradictsCancel(p *acceptedRequest) bool {
	return p.cancelledTo != "" && p.answer != nil && p.answer.Status != p.cancelledTo
}

// findDoubleAccepted returns requests for which two results of one subtask were
// accepted.
func (l *Ledger) findDoubleAccepted() []string {
	marks := map[subtask]string{}
	wrong := map[string]bool{}
	for _, c := range l.callbacks {
		if c.status != http.StatusOK {
			continue
		}
		if mark, ok := marks[c.subtask]; ok && mark != c.mark {
			wrong[c.request] = true
		}
		marks[c.subtask] = c.mark
	}
	return slices.Sorted(maps.Keys(wrong))
}

// findRepeatedWork returns requests with a subtask that agents which are not
// idempotent executed again. A standby may execute what another agent failed to do,
// but each agent at most once.
func (l *Ledger) findRepeatedWork() []string {
	type hand struct {
		subtask
		agent string
	}
	byAgent, unlessFailed := map[hand]int{}, map[subtask]int{}
	wrong := map[string]bool{}
	for _, e := range l.executions {
		if e.idempotent {
			continue
		}
		byAgent[hand{e.subtask, e.agent}]++
		if !e.failed {
			unlessFailed[e.subtask]++
		}
		if byAgent[hand{e.subtask, e.agent}] > 1 || unlessFailed[e.subtask] > 1 {
			wrong[e.request] = true
		}
	}
	return slices.Sorted(maps.Keys(wrong))
}

// findMissingResults returns requests whose response lacks an accepted result.
func (l *Ledger) findMissingResults() []string {
	wrong := map[string]bool{}
	for _, c := range l.callbacks {
		if c.status != http.StatusOK {
			continue
		}
		p := l.requests[c.request]
		// A request without a response is reported by findLost.
		if p != nil && p.answer != nil && !slices.Contains(resultMarks(p.answer), c.mark) {
			wrong[c.request] = true
		}
	}
	return slices.Sorted(maps.Keys(wrong))
}

// findInventedResults returns requests whose response contains a result that no agent
// sent for it.
func (l *Ledger) findInventedResults() []string {
	given := map[string]string{} // request by mark
	for _, e := range l.executions {
		given[e.mark] = e.request
	}
	for _, c := range l.callbacks {
		given[c.mark] = c.request
	}
	return l.requestsWhere(func(p *acceptedRequest) bool {
		return p.answer != nil && slices.ContainsFunc(resultMarks(p.answer), func(mark string) bool { return given[mark] != p.id })
	})
}

func (l *Ledger) findAmbiguousKeys() []string {
	var wrong []string
	for _, key := range slices.Sorted(maps.Keys(l.keys)) {
		if ids := l.keys[key]; len(ids) > 1 {
			wrong = append(wrong, fmt.Sprintf("%s: %v", key, ids))
		}
	}
	return wrong
}

// findRefusedCallbacks returns results that were refused although there was no other
// result and the request was open.
func (l *Ledger) findRefusedCallbacks() []string {
	var wrong []string
	for _, c := range l.callbacks {
		if c.status != http.StatusOK && c.status != http.StatusConflict {
			wrong = append(wrong, fmt.Sprintf("%s: task %s was answered %d", c.request, c.task, c.status))
		}
	}
	return wrong
}

// markMember is the member of a result's data that identifies the result.
const markMember = "mark"

func resultMarks(resp *contract.Response) []string {
	var marks []string
	for i := range resp.Data.Results {
		if raw, ok := resp.Data.Results[i].Data[markMember]; ok {
			marks = append(marks, unquoteJSON(raw))
		}
	}
	return marks
}

// unquoteJSON decodes a JSON string without escapes.
func unquoteJSON(raw json.RawMessage) string {
	if len(raw) < 2 {
		return ""
	}
	return string(raw[1 : len(raw)-1])
}

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// finding is one check and what it found wrong, by request.
type finding struct {
	what  string
	wrong []string
}

// check holds the promises against what became of them.
func (l *ledger) check() []finding {
	l.mu.Lock()
	defer l.mu.Unlock()
	return []finding{
		{"accepted with 202, then unknown or without an end", l.lost()},
		{"a terminal answer that changed", l.changed()},
		{"two final events, or one that the answer contradicts", l.among(contradicted)},
		{"two results of one part accepted by callback", l.acceptedTwice()},
		{"work that must not be repeated, done twice", l.doneTwice()},
		{"a result accepted by callback that is not in the answer", l.missing()},
		{"an answer with a result no agent gave", l.invented()},
		{"an Idempotency-Key that stood for two requests", l.ambiguousKeys()},
		{"a callback that was refused without need", l.refused()},
		{"an answer nobody expects", l.oddities()},
	}
}

func (l *ledger) among(wrong func(*promise) bool) []string {
	var ids []string
	for _, id := range l.order {
		if wrong(l.promises[id]) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (l *ledger) lost() []string {
	ids := l.among(func(p *promise) bool { return p.gone || p.answer == nil })
	for i, id := range ids {
		ids[i] = fmt.Sprintf("%s: %s", id, l.history(id))
	}
	return ids
}

// history says what helps to find out what went wrong with a request.
func (l *ledger) history(id string) string {
	p := l.promises[id]
	said := []string{fmt.Sprintf("promised in cycle %d, %d posts", p.cycle, p.promised)}
	for key, ids := range l.keys {
		if slices.Contains(ids, id) {
			said = append(said, key)
		}
	}
	for _, e := range l.work {
		if e.request == id {
			said = append(said, "given to "+e.agent)
		}
	}
	if p.gone {
		said = append(said, "404")
	}
	return strings.Join(said, ", ")
}

// changed finds terminal answers that did not stay, and says what they became.
func (l *ledger) changed() []string {
	ids := l.among(func(p *promise) bool { return p.changed != nil })
	for i, id := range ids {
		ids[i] = fmt.Sprintf("%s: %s, then %s", id, inShort(l.promises[id].answer), inShort(l.promises[id].changed))
	}
	return ids
}

// inShort says what an answer comes to.
func inShort(resp *contract.Response) string {
	said := []string{string(resp.Status)}
	for i := range resp.Tasks {
		t := &resp.Tasks[i]
		why := ""
		if t.Error != nil {
			why = fmt.Sprintf(" (%s: %s)", t.Error.Code, t.Error.Detail)
		}
		said = append(said, fmt.Sprintf("%s %s %s%s", t.TaskID, t.AgentID, t.Status, why))
	}
	return strings.Join(said, ", ")
}

func contradicted(p *promise) bool {
	return p.finals > 1 || p.finals == 1 && p.answer != nil && p.said != p.answer.Status
}

// acceptedTwice finds parts of which agents were told 200 for different results.
func (l *ledger) acceptedTwice() []string {
	marks := map[part]string{}
	wrong := map[string]bool{}
	for _, c := range l.callbacks {
		if c.status != http.StatusOK {
			continue
		}
		if mark, ok := marks[c.part]; ok && mark != c.mark {
			wrong[c.request] = true
		}
		marks[c.part] = c.mark
	}
	return slices.Sorted(maps.Keys(wrong))
}

// doneTwice finds parts that were done again though the agent is not idempotent.
// A standby may do what another one says it did not; nobody does it twice.
func (l *ledger) doneTwice() []string {
	type hand struct {
		part
		agent string
	}
	byAgent, unlessFailed := map[hand]int{}, map[part]int{}
	wrong := map[string]bool{}
	for _, e := range l.work {
		if e.repeatable {
			continue
		}
		byAgent[hand{e.part, e.agent}]++
		if !e.failed {
			unlessFailed[e.part]++
		}
		if byAgent[hand{e.part, e.agent}] > 1 || unlessFailed[e.part] > 1 {
			wrong[e.request] = true
		}
	}
	return slices.Sorted(maps.Keys(wrong))
}

// missing finds results that were accepted and are not in the answer.
func (l *ledger) missing() []string {
	wrong := map[string]bool{}
	for _, c := range l.callbacks {
		if c.status != http.StatusOK {
			continue
		}
		p := l.promises[c.request]
		// What was never promised to a caller has no answer here, and an answer
		// that is not there at all is lost.
		if p != nil && p.answer != nil && !slices.Contains(marksOf(p.answer), c.mark) {
			wrong[c.request] = true
		}
	}
	return slices.Sorted(maps.Keys(wrong))
}

// invented finds answers with a result that no agent gave for that request.
func (l *ledger) invented() []string {
	given := map[string]string{} // mark → request
	for _, e := range l.work {
		given[e.mark] = e.request
	}
	for _, c := range l.callbacks {
		given[c.mark] = c.request
	}
	return l.among(func(p *promise) bool {
		return p.answer != nil && slices.ContainsFunc(marksOf(p.answer), func(mark string) bool { return given[mark] != p.id })
	})
}

func (l *ledger) ambiguousKeys() []string {
	var wrong []string
	for _, key := range slices.Sorted(maps.Keys(l.keys)) {
		if ids := l.keys[key]; len(ids) > 1 {
			wrong = append(wrong, fmt.Sprintf("%s: %v", key, ids))
		}
	}
	return wrong
}

// refused finds results that were refused for another reason than that there was
// one already, or that the request has ended.
func (l *ledger) refused() []string {
	var wrong []string
	for _, c := range l.callbacks {
		if c.status != http.StatusOK && c.status != http.StatusConflict {
			wrong = append(wrong, fmt.Sprintf("%s: task %s was answered %d", c.request, c.task, c.status))
		}
	}
	return wrong
}

func (l *ledger) oddities() []string {
	wrong := make([]string, len(l.odd))
	for i, o := range l.odd {
		wrong[i] = o.request + ": " + o.what
	}
	return wrong
}

// markName is the member of a result's data that tells it from every other.
const markName = "mark"

// marksOf returns the marks of the results in an answer.
func marksOf(resp *contract.Response) []string {
	var marks []string
	for i := range resp.Data.Results {
		if raw, ok := resp.Data.Results[i].Data[markName]; ok {
			marks = append(marks, textOf(raw))
		}
	}
	return marks
}

// textOf is the string that agents put there without anything to escape.
func textOf(raw json.RawMessage) string {
	if len(raw) < 2 {
		return ""
	}
	return string(raw[1 : len(raw)-1])
}

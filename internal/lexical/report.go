package lexical

import (
	"cmp"
	"slices"
	"strings"
)

// Report states what a model learned from, and how well it predicts examples
// that it was not trained on (cross-fitting). The shares are estimates for
// requests that resemble the examples.
type Report struct {
	Examples int // distinct examples of all intents
	// Trials is the number of held-out predictions, and Accuracy the share of
	// correct ones. Without trials, Accuracy is 0.
	Trials   int
	Accuracy float64
	Intents  []IntentReport // by name
	// Confusions are the intents that held-out examples were taken for, the
	// most frequent first.
	Confusions []Confusion
}

// IntentReport is the part of a Report about one intent.
type IntentReport struct {
	Intent   string
	Examples int
	Trials   int
	Accuracy float64
}

// Confusion counts the held-out examples of Intent that were taken for Got.
type Confusion struct {
	Intent, Got string
	Count       int
}

// Report returns the result of cross-fitting.
func (m *Model) Report() Report { return m.report }

// newReport counts the in-scope trials by intent. docs are the documents that
// trials refer to by number.
func newReport(docs []IntentDoc, trials []heldOutPrediction) Report {
	r := Report{Intents: make([]IntentReport, len(docs))}
	for i := range docs {
		n := len(sortedUnique(docs[i].Examples))
		r.Intents[i] = IntentReport{Intent: docs[i].Name, Examples: n}
		r.Examples += n
	}
	confused := map[Confusion]int{}
	right, rightOf := 0, make([]int, len(docs))
	for i := range trials {
		t := &trials[i]
		if t.outOfScope {
			continue
		}
		r.Trials++
		r.Intents[t.class].Trials++
		if t.correct {
			right++
			rightOf[t.class]++
		} else {
			confused[Confusion{Intent: docs[t.class].Name, Got: docs[t.best].Name}]++
		}
	}
	r.Accuracy = roundConfidence(float64(right) / float64(max(r.Trials, 1)))
	for i := range r.Intents {
		r.Intents[i].Accuracy = roundConfidence(float64(rightOf[i]) / float64(max(r.Intents[i].Trials, 1)))
	}
	for c, n := range confused {
		c.Count = n
		r.Confusions = append(r.Confusions, c)
	}
	slices.SortFunc(r.Confusions, func(a, b Confusion) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Intent, b.Intent), strings.Compare(a.Got, b.Got))
	})
	return r
}

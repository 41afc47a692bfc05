package golden

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/matcher"
)

// rowPrediction is the prediction for one row, compared with its labels.
type rowPrediction struct {
	row        *labelledRow
	best       string // best intent, even if rejected
	confidence float64
	claimed    bool

	correct       bool // the intent, or the set of intents
	bestCorrect   bool // the best intent is one of the row's
	domainCorrect bool
	agentCorrect  bool

	labelKnown, domainKnown bool // the registry contains the labels

	// parts are the intents of the parts of a prompt, each correct if it is one
	// of the row's.
	parts []scoredRow
}

// rowClassifier classifies rows and compares the predictions with their labels.
type rowClassifier struct {
	registry *benchRegistry
	model    *lexical.Model
	index    *matcher.Index
	caller   contract.Caller
	matched  matcher.Result

	// splitting is a lexical classifier that splits prompts; nil if rows have a
	// single label.
	splitting *classifier.Classifier
}

func newRowClassifier(registry *benchRegistry, model *lexical.Model, multi bool) (*rowClassifier, error) {
	s := registry.snapshot
	c := &rowClassifier{
		registry: registry, model: model, caller: contract.Caller{AllScopes: true},
		index: matcher.Build(s.Agents, matcher.DefaultWeights(), s.Routing.ThresholdHundredths()),
	}
	if multi {
		var err error
		if c.splitting, err = classifier.New(classifier.Config{Mode: classifier.ModeLexical}); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// classifyText is the operation that is timed.
func (c *rowClassifier) classifyText(text string) {
	if c.splitting != nil {
		c.classifyWhole(context.Background(), text)
		return
	}
	c.model.Classify(text)
}

func (c *rowClassifier) predictAll(ctx context.Context, stage string, rows []labelledRow, progress func(string, int, int)) ([]rowPrediction, error) {
	predictions := make([]rowPrediction, len(rows))
	err := forEachRow(ctx, stage, len(rows), progress, func(i int) {
		if c.splitting != nil {
			predictions[i] = c.predictSet(ctx, &rows[i])
		} else {
			predictions[i] = c.predictRow(&rows[i])
		}
	})
	return predictions, err
}

func (c *rowClassifier) predictRow(row *labelledRow) rowPrediction {
	p := c.model.Classify(row.Text)
	v := rowPrediction{
		row: row, best: p.BestIntent, confidence: p.Confidence,
		claimed: p.Intent != contract.Unknown,
	}
	if row.isOutOfScope() {
		return v
	}
	label, known := c.registry.intents.lookup(row.Intent)
	v.labelKnown = known
	v.correct = known && v.best == label
	v.bestCorrect = v.correct

	domains := p.Domains
	if len(domains) == 0 { // the model implies domains for accepted intents only
		domains = c.registry.domainsOf[v.best]
	}
	domain, known := c.registry.domains.lookup(row.Domain)
	v.domainKnown = known
	v.domainCorrect = known && len(domains) > 0 && domains[0] == domain
	agent, known := c.registry.agents.lookup(row.Domain)
	v.agentCorrect = known && c.matchAgent(row, v.best, domains) == agent
	return v
}

// matchAgent returns the agent that the matcher selects for the classification,
// or "". The confidence does not matter.
func (c *rowClassifier) matchAgent(row *labelledRow, intent string, domains []string) string {
	if len(domains) == 0 {
		domains = []string{contract.Unknown}
	}
	q := matcher.Query{Intent: intent, Domains: domains, PromptBytes: len(row.Text), Caller: &c.caller}
	c.index.Match(&q, nil, &c.matched)
	if best := c.matched.Best(); len(best) > 0 && best[0].Eligible() {
		return c.index.Agents()[best[0].Ordinal].ID
	}
	return ""
}

func (c *rowClassifier) classifyWhole(ctx context.Context, text string) contract.Classification {
	return c.splitting.Classify(ctx, classifier.Input{Prompt: text, Catalogue: c.registry.snapshot, Lexical: c.model})
}

// labelSeparator separates the labels of a row.
const labelSeparator = "#"

// predictSet compares the set of intents with the set of labels.
func (c *rowClassifier) predictSet(ctx context.Context, row *labelledRow) rowPrediction {
	clf := c.classifyWhole(ctx, row.Text)
	v := rowPrediction{row: row, best: clf.Intent, confidence: clf.Confidence, claimed: clf.Intent != contract.Unknown}
	if row.isOutOfScope() {
		return v
	}
	want := map[string]bool{}
	v.labelKnown = true
	for label := range strings.SplitSeq(row.Intent, labelSeparator) {
		name, known := c.registry.intents.lookup(label)
		v.labelKnown = v.labelKnown && known
		want[name] = true
	}
	got := map[string]bool{}
	for _, part := range clf.Subtasks {
		got[part.Intent] = true
	}
	if len(clf.Subtasks) == 0 {
		got[clf.Intent] = true
	}
	v.correct = v.labelKnown && maps.Equal(want, got)
	v.bestCorrect = want[clf.Intent]
	v.parts = c.predictParts(row.Text, &clf, want)
	return v
}

// predictParts returns the intents of a classification with their confidences:
// that of the most confident part of the text with the intent, because a
// subtask has none. An unsplit prompt has its best intent.
func (c *rowClassifier) predictParts(text string, clf *contract.Classification, want map[string]bool) []scoredRow {
	if len(clf.Subtasks) == 0 {
		p := c.model.Classify(text)
		return []scoredRow{{Confidence: p.Confidence, Correct: want[p.BestIntent]}}
	}
	surest := map[string]float64{}
	whole := c.model.NewText(text)
	for _, run := range whole.SplitRequests() {
		p := whole.Classify(run)
		surest[p.Intent] = max(surest[p.Intent], p.Confidence)
	}
	parts := make([]scoredRow, len(clf.Subtasks))
	for i := range clf.Subtasks {
		intent := clf.Subtasks[i].Intent
		parts[i] = scoredRow{Confidence: surest[intent], Correct: want[intent]}
	}
	return parts
}

// allParts returns the parts of all rows.
func allParts(predictions []rowPrediction) []scoredRow {
	var rows []scoredRow
	for i := range predictions {
		rows = append(rows, predictions[i].parts...)
	}
	return rows
}

// scoredRows converts predictions for the metrics of confidence, without
// rejection.
func scoredRows(predictions []rowPrediction) []scoredRow {
	rows := make([]scoredRow, len(predictions))
	for i := range predictions {
		v := &predictions[i]
		rows[i] = scoredRow{Confidence: v.confidence, Correct: v.correct, OutOfScope: v.row.isOutOfScope()}
	}
	return rows
}

// acceptableRows converts predictions as a router acts on them: a rejected one
// is below every threshold.
func acceptableRows(predictions []rowPrediction) []scoredRow {
	rows := slices.Clone(scoredRows(predictions))
	for i := range rows {
		if !predictions[i].claimed {
			rows[i].Confidence = -1
			rows[i].Correct = false
		}
	}
	return rows
}

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

// verdict is what became of one row.
type verdict struct {
	row        *utterance
	best       string // the best intent, claimed or not
	confidence float64
	claimed    bool

	right       bool // the intent, or the set of them
	bestRight   bool // the best intent is the row's, or one of its
	domainRight bool
	agentRight  bool

	labelKnown, domainKnown bool // the registry has them

	// parts are the intents of a prompt that may ask for several things, each
	// right when it is one of the row's.
	parts []scored
}

// judge classifies rows and compares what comes out with their labels.
type judge struct {
	registry *benchRegistry
	model    *lexical.Model
	index    *matcher.Index
	caller   contract.Caller
	matched  matcher.Result

	// whole is the classifier of a router without a model, which splits prompts;
	// nil when rows have one label each.
	whole *classifier.Classifier
}

func newJudge(registry *benchRegistry, model *lexical.Model, multi bool) (*judge, error) {
	s := registry.snapshot
	j := &judge{
		registry: registry, model: model, caller: contract.Caller{AllScopes: true},
		index: matcher.Build(s.Agents, matcher.DefaultWeights(), s.Routing.ThresholdHundredths()),
	}
	if multi {
		var err error
		if j.whole, err = classifier.New(classifier.Config{Mode: classifier.ModeLexical}); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// classify is the work that is timed.
func (j *judge) classify(text string) {
	if j.whole != nil {
		j.propose(context.Background(), text)
		return
	}
	j.model.Classify(text)
}

func (j *judge) all(ctx context.Context, stage string, rows []utterance, progress func(string, int, int)) ([]verdict, error) {
	verdicts := make([]verdict, len(rows))
	err := each(ctx, stage, len(rows), progress, func(i int) {
		if j.whole != nil {
			verdicts[i] = j.judgeSet(ctx, &rows[i])
		} else {
			verdicts[i] = j.judge(&rows[i])
		}
	})
	return verdicts, err
}

func (j *judge) judge(row *utterance) verdict {
	p := j.model.Classify(row.Text)
	v := verdict{
		row: row, best: p.BestIntent, confidence: p.Confidence,
		claimed: p.Intent != contract.Unknown,
	}
	if row.outOfScope() {
		return v
	}
	label, known := j.registry.intents.known(row.Intent)
	v.labelKnown = known
	v.right = known && v.best == label
	v.bestRight = v.right

	domains := p.Domains
	if len(domains) == 0 { // a model says what goes without saying of a claimed intent only
		domains = j.registry.domainsOf[v.best]
	}
	domain, known := j.registry.domains.known(row.Domain)
	v.domainKnown = known
	v.domainRight = known && len(domains) > 0 && domains[0] == domain
	agent, known := j.registry.agents.known(row.Domain)
	v.agentRight = known && j.agent(row, v.best, domains) == agent
	return v
}

// agent is whom the matcher gives the proposal to, "" when to nobody. How sure
// the proposal is does not count.
func (j *judge) agent(row *utterance, intent string, domains []string) string {
	if len(domains) == 0 {
		domains = []string{contract.Unknown}
	}
	q := matcher.Query{Intent: intent, Domains: domains, PromptBytes: len(row.Text), Caller: &j.caller}
	j.index.Match(&q, nil, &j.matched)
	if best := j.matched.Best(); len(best) > 0 && best[0].Eligible() {
		return j.index.Agents()[best[0].Ordinal].ID
	}
	return ""
}

func (j *judge) propose(ctx context.Context, text string) contract.Classification {
	return j.whole.Classify(ctx, classifier.Input{Prompt: text, Catalogue: j.registry.snapshot, Lexical: j.model})
}

// labelSeparator stands between the labels of a row that asks for several things.
const labelSeparator = "#"

// judgeSet compares the set of intents with the set of labels.
func (j *judge) judgeSet(ctx context.Context, row *utterance) verdict {
	clf := j.propose(ctx, row.Text)
	v := verdict{row: row, best: clf.Intent, confidence: clf.Confidence, claimed: clf.Intent != contract.Unknown}
	if row.outOfScope() {
		return v
	}
	want := map[string]bool{}
	v.labelKnown = true
	for label := range strings.SplitSeq(row.Intent, labelSeparator) {
		name, known := j.registry.intents.known(label)
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
	v.right = v.labelKnown && maps.Equal(want, got)
	v.bestRight = want[clf.Intent]
	v.parts = j.parts(row.Text, &clf, want)
	return v
}

// parts are the intents of a proposal, each with its own confidence, which a
// subtask does not carry: it is that of the surest run of the text with that
// intent. A prompt that was not divided has its best intent, claimed or not.
func (j *judge) parts(text string, clf *contract.Classification, want map[string]bool) []scored {
	if len(clf.Subtasks) == 0 {
		p := j.model.Classify(text)
		return []scored{{Confidence: p.Confidence, Right: want[p.BestIntent]}}
	}
	surest := map[string]float64{}
	for _, run := range j.model.SplitRequests(text) {
		p := j.model.Classify(run)
		surest[p.Intent] = max(surest[p.Intent], p.Confidence)
	}
	parts := make([]scored, len(clf.Subtasks))
	for i := range clf.Subtasks {
		intent := clf.Subtasks[i].Intent
		parts[i] = scored{Confidence: surest[intent], Right: want[intent]}
	}
	return parts
}

// allParts are the parts of all rows in scope.
func allParts(verdicts []verdict) []scored {
	var rows []scored
	for i := range verdicts {
		rows = append(rows, verdicts[i].parts...)
	}
	return rows
}

// scores are the verdicts as the metrics of confidence see them: nothing is
// rejected.
func scores(verdicts []verdict) []scored {
	rows := make([]scored, len(verdicts))
	for i := range verdicts {
		v := &verdicts[i]
		rows[i] = scored{Confidence: v.confidence, Right: v.right, OutOfScope: v.row.outOfScope()}
	}
	return rows
}

// claims are the verdicts as a router acts on them: what is not claimed cannot
// be accepted, and stands below every threshold.
func claims(verdicts []verdict) []scored {
	rows := slices.Clone(scores(verdicts))
	for i := range rows {
		if !verdicts[i].claimed {
			rows[i].Confidence = -1
			rows[i].Right = false
		}
	}
	return rows
}

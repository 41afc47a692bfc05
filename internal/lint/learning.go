package lint

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/plaintext"
)

// Learning is what the lexical classifier learned from the examples of a registry,
// and how well it predicts examples that it was not trained on (cross-fitting).
type Learning struct {
	lexical.Report
	Languages []LanguageCount // most frequent first
}

// LanguageCount counts the examples in a language.
type LanguageCount struct {
	Language string // BCP 47; unknownLanguage if it was not recognized
	Examples int
}

const unknownLanguage = "und" // BCP 47: undetermined

// Describe returns what the lexical model learned from the catalogue.
func Describe(c *capabilities.Catalogue, m *lexical.Model) *Learning {
	l := &Learning{Report: m.Report()}
	counts := map[string]int{}
	for _, agent := range c.Agents {
		for _, list := range agent.Examples {
			for _, text := range list {
				counts[cmp.Or(fallback.DetectLanguage(text), unknownLanguage)]++
			}
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(counts)) {
		l.Languages = append(l.Languages, LanguageCount{tag, counts[tag]})
	}
	slices.SortStableFunc(l.Languages, func(a, b LanguageCount) int { return cmp.Compare(b.Examples, a.Examples) })
	return l
}

// Limits of the text forms.
const (
	maxListed       = 3
	weakAccuracy    = 0.7 // intents below it are listed
	minIntentTrials = 3   // fewer are no estimate
)

// FormatExamples returns the number of examples and their languages: "52 examples
// (45 en, 7 pt)".
func (l *Learning) FormatExamples() string {
	if l.Examples == 0 {
		return "no examples"
	}
	var counts []string
	for _, c := range l.Languages {
		name := c.Language
		if name == unknownLanguage {
			name = "of unknown language"
		}
		counts = append(counts, fmt.Sprintf("%d %s", c.Examples, name))
	}
	return fmt.Sprintf("%s (%s)", plaintext.CountNoun(l.Examples, "example"), strings.Join(counts, ", "))
}

// minTrials is how many held-out examples an accuracy or a confusion needs to mean
// something.
const minTrials = 10

// FormatAccuracy returns how often the best intent is right, also where it would be rejected:
// "0.86 by agent and 0.71 by intent of requests worded like the 52 held-out examples, whatever the
// confidence", or "" without an estimate.
func (l *Learning) FormatAccuracy() string {
	if l.Trials < minTrials {
		return ""
	}
	return fmt.Sprintf("%.2f by agent and %.2f by intent of requests worded like the %d held-out examples, whatever the confidence",
		l.AgentAccuracy, l.Accuracy, l.Trials)
}

// Advice returns what raises a low accuracy, or "".
func (l *Learning) Advice() string {
	if l.Trials < minTrials || l.Accuracy >= weakAccuracy {
		return ""
	}
	return "more examples raise the accuracy, first those of the weakest intents; with fewer than ten for an intent it is a rough estimate"
}

// ExplainAccuracy returns what the expected accuracy is measured on, or why there is none; "" without
// examples.
func (l *Learning) ExplainAccuracy() string {
	switch {
	case l.Examples == 0:
		return ""
	case l.Trials < minTrials:
		return fmt.Sprintf("no expected accuracy: it needs %d examples that can be held out, and there are %d", minTrials, l.Trials)
	}
	return fmt.Sprintf("each of the %d held-out examples is predicted by a model that was trained without it and its variants, and counts for %.2f: "+
		"an unusual one, such as teach adds, lowers the accuracy until there are more like it. Requests in other words "+
		"reach their agent less often, so it is an upper estimate: golden cases measure requests", l.Trials, 1/float64(l.Trials))
}

// Weakest returns the intents with the lowest accuracy, at most three.
func (l *Learning) Weakest() []string {
	weak := slices.DeleteFunc(slices.Clone(l.Intents), func(r lexical.IntentReport) bool {
		return r.Trials < minIntentTrials || r.Accuracy >= weakAccuracy
	})
	slices.SortStableFunc(weak, func(a, b lexical.IntentReport) int { return cmp.Compare(a.Accuracy, b.Accuracy) })
	var names []string
	for _, r := range weak[:min(len(weak), maxListed)] {
		names = append(names, fmt.Sprintf("%s %.2f", r.Intent, r.Accuracy))
	}
	return names
}

// MostConfused returns the most frequent confusions of intents, at most three; none if
// there are too few held-out examples.
func (l *Learning) MostConfused() []string {
	if l.Trials < minTrials {
		return nil
	}
	var pairs []string
	for _, c := range l.Confusions[:min(len(l.Confusions), maxListed)] {
		pairs = append(pairs, fmt.Sprintf("%s as %s (%d)", c.Intent, c.Got, c.Count))
	}
	return pairs
}

// String returns all of it in one line.
func (l *Learning) String() string {
	parts := []string{l.FormatExamples()}
	if accuracy := l.FormatAccuracy(); accuracy != "" {
		parts = append(parts, "expected accuracy "+accuracy)
	}
	if weak := l.Weakest(); len(weak) > 0 {
		parts = append(parts, "weakest "+strings.Join(weak, ", "))
	}
	if confused := l.MostConfused(); len(confused) > 0 {
		parts = append(parts, "confused "+strings.Join(confused, ", "))
	}
	return strings.Join(parts, "; ")
}

// A pair of intents is reported if at least minConfused held-out examples, and at
// least this share of them, are taken for the other intent.
const (
	minConfused      = 3
	confusedShare    = 0.3
	maxConfusedPairs = 10
	maxNamedAgents   = 10
)

// findConfusions reports intents whose examples do not tell them apart.
func (l *Learning) findConfusions(c *capabilities.Catalogue) (findings []capabilities.Finding) {
	trials := map[string]int{}
	for _, r := range l.Intents {
		trials[r.Intent] = r.Trials
	}
	for _, pair := range l.Confusions {
		n := trials[pair.Intent]
		if pair.Count < minConfused || float64(pair.Count) < confusedShare*float64(n) || len(findings) == maxConfusedPairs {
			continue
		}
		f := capabilities.Finding{
			Rule: RuleConfusedIntents, Severity: capabilities.SeverityInfo, Agents: []string{},
			Message: fmt.Sprintf("%d of %d held-out examples of %s are taken for %s: let their examples differ in more words, or add more of them",
				pair.Count, n, pair.Intent, pair.Got),
		}
		for _, agent := range c.Agents {
			if len(f.Agents) < maxNamedAgents && (slices.Contains(agent.Match.Intent, pair.Intent) || slices.Contains(agent.Match.Intent, pair.Got)) {
				f.Agents = append(f.Agents, agent.ID)
			}
		}
		findings = append(findings, f)
	}
	return findings
}

package lexical_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/testkit"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

// TestClassify_UnusualStrings checks that strings that often cause errors neither panic nor match
// an intent.
func TestClassify_UnusualStrings(t *testing.T) {
	data, err := os.ReadFile(testkit.Shared(t, "corpora", "naughty-strings", "blns.json"))
	if err != nil {
		t.Fatal(err)
	}
	var naughty []string
	if err := json.Unmarshal(data, &naughty); err != nil {
		t.Fatal(err)
	}
	m := lexical.Train(sourceCorpus())
	for _, text := range naughty {
		if got := m.Classify(text); got.Intent != contract.Unknown {
			t.Errorf("%q: got %s with %v, want unknown", text, got.Intent, got.Confidence)
		}
		m.SplitClauses(text)
		if strings.Contains(text, "```") {
			continue
		}
		if got := m.Classify("code review of " + text); got.Intent != "code_review" || got.Confidence < lexical.MinActionConfidence {
			t.Errorf("request with %q: got %s with %v, want code_review", text, got.Intent, got.Confidence)
		}
	}
}

// TestClassify_PublicSets checks minimum values of the figures on public data sets. (The command
// golden bench measures all of them.)
func TestClassify_PublicSets(t *testing.T) {
	testkit.SkipWithRace(t)
	tests := []struct {
		name                                   string
		train, test, oos                       []string
		accuracy, inScope, oosRecall, accepted float64 // at least
	}{
		{
			"CLINC150",
			[]string{"data", "clinc150", "train.tsv"},
			[]string{"data", "clinc150", "val.tsv"},
			[]string{"data", "clinc150", "oos_val.tsv"},
			0.92, 0.905, 0.60, 0.97,
		},
		{
			"CLINC150, 10 examples an intent",
			[]string{"data", "clinc150", "train_10shot.tsv"},
			[]string{"data", "clinc150", "val.tsv"},
			[]string{"data", "clinc150", "oos_val.tsv"},
			0.80, 0.75, 0.70, 0.96,
		},
		{
			"MASSIVE, Spanish",
			[]string{"data", "massive", "es-ES", "train.tsv"},
			[]string{"data", "massive", "es-ES", "val.tsv"},
			[]string{"data", "extra_oos", "vertanen.tsv"},
			0.835, 0.825, 0.85, 0.96,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := lexical.Train(labelled(readTSV(t, tt.train)))
			var right, claimed, accepted, sure int
			rows := readTSV(t, tt.test)
			for _, row := range rows {
				p := m.Classify(row.text)
				if p.Confidence >= m.AcceptThreshold() {
					accepted++
				}
				if p.BestIntent != row.intent {
					continue
				}
				right++
				if p.Intent != contract.Unknown {
					claimed++
				}
				if p.Confidence >= m.AcceptThreshold() {
					sure++
				}
			}
			rejected := 0
			strangers := readTSV(t, tt.oos)
			for _, row := range strangers {
				if m.Classify(row.text).Intent == contract.Unknown {
					rejected++
				}
			}
			accuracy, inScope := share(right, len(rows)), share(claimed, len(rows))
			oosRecall, precision := share(rejected, len(strangers)), share(sure, accepted)
			t.Logf("accuracy %.3f, %.3f behind the threshold; out of scope rejected %.3f; %d accepted, %.3f of them right",
				accuracy, inScope, oosRecall, accepted, precision)
			if accuracy < tt.accuracy || inScope < tt.inScope || oosRecall < tt.oosRecall || precision < tt.accepted {
				t.Errorf("got %.3f, %.3f, %.3f, %.3f; want at least %v, %v, %v, %v",
					accuracy, inScope, oosRecall, precision, tt.accuracy, tt.inScope, tt.oosRecall, tt.accepted)
			}
			if size := m.SizeBytes(); size > 4<<20 {
				t.Errorf("got a model of %d bytes, want at most 4 MiB", size)
			}
		})
	}
}

func share(part, whole int) float64 { return float64(part) / float64(whole) }

type utterance struct{ text, intent string }

func readTSV(t *testing.T, elem []string) []utterance {
	t.Helper()
	f, err := os.Open(testkit.Shared(t, elem...))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var rows []utterance
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) < 2 {
			t.Fatalf("%s: got line %q, want text<TAB>intent<TAB>domain", filepath.Join(elem...), lines.Text())
		}
		rows = append(rows, utterance{text: fields[0], intent: fields[1]})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

func labelled(rows []utterance) lexical.Corpus {
	var c lexical.Corpus
	for _, row := range rows {
		c.Intents = append(c.Intents, lexical.IntentDoc{Name: row.intent, Examples: []string{row.text}})
	}
	return c
}

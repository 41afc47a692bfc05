package lexical

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/testkit"
)

// TestWeighText checks that words and n-grams have their shares of a length of 1, including unknown
// features.
func TestWeighText(t *testing.T) {
	w := idfWeights{idf: []float32{1, 2, 3, 4, 0}, unseenIDF: 5, flags: make([]featureFlags, 5)}
	tests := []struct {
		name     string
		features []int32
		words    int
		unknown  unknownCount
		length   float64 // squared length of the known features
		strange  float64
	}{
		{"all known", []int32{0, 1, 2, 3}, 2, unknownCount{}, 1, 0},
		{"words alone", []int32{0, 1}, 2, unknownCount{}, wordNormShare, 0},
		{"n-grams alone", []int32{2, 3}, 0, unknownCount{}, 1 - wordNormShare, 0},
		{"unknown word", []int32{0, 1, 2, 3}, 2, unknownCount{words: 1}, wordNormShare*5/30 + 1 - wordNormShare, 25.0 / 30},
		{"unknown n-gram", []int32{0, 1, 2, 3}, 2, unknownCount{ngrams: 1}, wordNormShare + (1-wordNormShare)*25/50, 0},
		{"word missing in the fold", []int32{0, 1, 4, 2, 3}, 3, unknownCount{}, wordNormShare*5/30 + 1 - wordNormShare, 25.0 / 30},
		{"no known feature", nil, 0, unknownCount{words: 2, ngrams: 3}, 0, 1},
		{"nothing", nil, 0, unknownCount{}, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			values, shares := w.weighText(nil, tt.features, tt.words, tt.unknown)
			length := 0.0
			for _, v := range values {
				length += float64(v * v)
			}
			if math.Abs(length-tt.length) > 1e-5 || math.Abs(float64(shares.unknown)-tt.strange) > 1e-5 {
				t.Errorf("got squared length %v and unknown share %v, want %v and %v", length, shares.unknown, tt.length, tt.strange)
			}
		})
	}
}

func TestAgentFamilies(t *testing.T) {
	doc := func(agents ...string) IntentDoc { return IntentDoc{Agents: agents} }
	tests := []struct {
		name     string
		docs     []IntentDoc
		want     []int32
		families int
	}{
		{"none", nil, nil, 0},
		{"one for all", []IntentDoc{doc("a"), doc("a"), doc("a")}, []int32{0, 0, 0}, 0},
		{"one for each", []IntentDoc{doc("a"), doc("b"), doc("c")}, []int32{0, 1, 2}, 0},
		{"two", []IntentDoc{doc("a"), doc("b"), doc("a")}, []int32{0, 1, 0}, 2},
		{"sets, in any order", []IntentDoc{doc("a", "b"), doc("b", "a", "b"), doc("b")}, []int32{0, 0, 1}, 2},
		{"intents without an agent", []IntentDoc{doc(), doc(), doc("a")}, []int32{0, 0, 1}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := agentFamilies(tt.docs)
			if diff := cmp.Diff(tt.want, got.of); diff != "" || got.count != tt.families {
				t.Errorf("got %d families, want %d (-want +got):\n%s", got.count, tt.families, diff)
			}
		})
	}
}

// TestFitLinear checks that separable classes are separated, also for held-out
// samples.
func TestFitLinear(t *testing.T) {
	docs := mergeIntents(trainedCorpus().Intents)
	families := agentFamilies(docs)
	d := newTrainingSet(trainingTexts(docs, families.of), families)
	for name, use := range map[string]func(int) bool{
		"all":  func(int) bool { return true },
		"half": func(i int) bool { return i%2 == 0 },
	} {
		l := fitLinear(d, use)
		scores := newClassScores(d.classes, families.count)
		wrong, seen := 0, 0
		for i := range d.samples {
			if s := &d.samples[i]; use(i) {
				values, shares := l.weighText(nil, s.features, int(s.words), unknownCount{})
				l.scoreClasses(scores.values, s.features, values)
				seen++
				if rankScores(&scores, &families, len(s.features), &shares).best != int(s.class) {
					wrong++
				}
			}
		}
		if wrong > seen/50 {
			t.Errorf("%s: got %d of %d examples wrong that it has learned from, want next to none", name, wrong, seen)
		}
	}
}

// TestQuantize checks that a quantized model scores like the original.
func TestQuantize(t *testing.T) {
	docs := mergeIntents(trainedCorpus().Intents)
	families := agentFamilies(docs)
	d := newTrainingSet(trainingTexts(docs, families.of), families)
	l := fitLinear(d, func(int) bool { return true })
	c := l.quantize(d.table)
	c.prepare()
	want := make([]float32, d.classes+families.count)
	got, sums := newClassScores(d.classes, families.count), make([]int32, len(want))
	for i := range d.samples {
		s := &d.samples[i]
		values, _ := l.weighText(nil, s.features, int(s.words), unknownCount{})
		l.scoreClasses(want, s.features, values)
		c.scoreClasses(&got, sums, s.features, values)
		for class := range d.classes {
			if off := math.Abs(float64(got.values[class] - want[class])); off > 0.6 {
				t.Fatalf("sample %d, class %d: got score %v, want about %v", i, class, got.values[class], want[class])
			}
		}
	}
	if len(c.weight) > len(l.weight) || c.sizeBytes() >= 6*len(l.weight)+20*len(l.idf)+8*len(c.features.Entries) {
		t.Errorf("got %d weights in %d bytes of %d weights, want fewer and smaller", len(c.weight), c.sizeBytes(), len(l.weight))
	}
}

// TestExplain_WeightsAddUp checks that the feature weights add up to the difference of the two
// scores, without biases.
func TestExplain_WeightsAddUp(t *testing.T) {
	m := Train(trainedCorpus())
	for _, text := range []string{"please settle the invoice", "book a room for the lunch, and a pizza", "明天天气怎么样", "zebra printer zebra"} {
		p := m.Classify(text)
		class := m.intentNumber(p.BestIntent)
		against := (class + 1) % len(m.intents)
		weights := map[string]float64{}
		m.addFeatureWeights(text, class, against, weights)
		got := 0.0
		for _, w := range weights {
			got += w
		}
		bias := m.statistical.linear.bias
		want := float64(m.scoreOf(text, m.intents[class]) - m.scoreOf(text, m.intents[against]) - bias[class] + bias[against])
		if math.Abs(got-want) > 0.01 {
			t.Errorf("%q: got weights %v that add up to %v, want %v", text, weights, got, want)
		}
	}
}

// TestFitLinear_ManyIntents fits more intents than a feature has weights for.
func TestFitLinear_ManyIntents(t *testing.T) {
	testkit.SkipWithRace(t)
	var c Corpus
	for i := range maxFeatureClasses + 40 {
		d := IntentDoc{Name: fmt.Sprintf("task%c%c", 'a'+i/26, 'a'+i%26)}
		for _, how := range []string{"please do %s", "now %s again", "%s it for me", "could you %s", "i want %s done"} {
			d.Examples = append(d.Examples, fmt.Sprintf(how, fmt.Sprintf("zq%c%cx", 'a'+i/26, 'a'+i%26)))
		}
		c.Intents = append(c.Intents, d)
	}
	m := Train(c)
	for i, want := range []string{"taskaa", "taskda", "taskjz"} {
		text := "please " + []string{"zqaax", "zqdax", "zqjzx"}[i] + " it"
		if got := m.Classify(text); got.BestIntent != want {
			t.Errorf("%q: got %s with %v, want %s", text, got.BestIntent, got.Confidence, want)
		}
	}
}

package lexical

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical/calibration"
	"github.com/caprouter/caprouter/internal/lexical/feature"
	"github.com/caprouter/caprouter/internal/lexical/token"
)

func TestTrain_StatisticalModel(t *testing.T) {
	m := Train(trainedCorpus())
	if !m.Calibrated() {
		t.Fatal("got a model that is not calibrated, want one: there are examples enough")
	}
	tests := []struct{ text, best string }{
		{"could you settle this bill", "pay_invoice"},
		{"paying the suppliers' invoices", "pay_invoice"},
		{"I'd like my money back for the lamp", "refund_order"},
		{"a room for twelve people, please", "book_room"},
		{"a salad would be nice, get me one", "order_lunch"},
		{"I forgot my PASSWORD, reset it", "reset_password"},
		{"the printers jam again, repair them", "fix_printer"},
		{"明天会下雨吗？", "weather"},
		{"下周的天气", "weather"},
		{"pay_invoice", "pay_invoice"},
	}
	for _, tt := range tests {
		p := m.Classify(tt.text)
		if p.BestIntent != tt.best {
			t.Errorf("%q: got %s with %v, want %s", tt.text, p.BestIntent, p.Confidence, tt.best)
		}
	}
}

// TestClassify_OtherLanguage checks that text in another language is rejected, even if it shares
// syllables with the examples.
func TestClassify_OtherLanguage(t *testing.T) {
	m := Train(trainedCorpus())
	for _, text := range []string{
		"", "???", "🎉", "```\npay the invoice\n```", "wo kann ich hier billig essen gehen", "où se trouve la bibliothèque municipale",
		"где находится вокзал", "この近くに駅はありますか", "xqzt vbnk wrtl",
	} {
		p := m.Classify(text)
		if p.Intent != contract.Unknown || p.Confidence >= m.RejectThreshold() {
			t.Errorf("%q: got %s with %v, want unknown below %v", text, p.Intent, p.Confidence, m.RejectThreshold())
		}
	}
}

// TestTrain_StatisticalModelIgnoresOrder checks that the result does not depend on the order of the
// corpus.
func TestTrain_StatisticalModelIgnoresOrder(t *testing.T) {
	want := Train(trainedCorpus())
	for seed := range uint64(10) { // training takes too long for rapid.Check
		random := rand.New(rand.NewPCG(seed, 0))
		c := trainedCorpus()
		random.Shuffle(len(c.Intents), func(i, j int) { c.Intents[i], c.Intents[j] = c.Intents[j], c.Intents[i] })
		random.Shuffle(len(c.Domains), func(i, j int) { c.Domains[i], c.Domains[j] = c.Domains[j], c.Domains[i] })
		for _, d := range c.Intents {
			random.Shuffle(len(d.Examples), func(i, j int) { d.Examples[i], d.Examples[j] = d.Examples[j], d.Examples[i] })
		}
		got := Train(c)
		if diff := cmp.Diff(want.statistical, got.statistical, cmp.AllowUnexported(statisticalModel{}, quantizedModel{}, quantizedVectors{}, idfWeights{}, classFamilies{}, familyMembers{}, biasOrder{}, declaredTexts{}, declaredText{}, feature.Table{}, feature.Entry{}, calibration.Model{}, calibration.Knot{})); diff != "" {
			t.Fatalf("seed %d: trained part (-in order +shuffled):\n%s", seed, diff[:min(len(diff), 2000)])
		}
	}
}

// TestClassify_StatisticalPredictions checks properties of every calibrated
// prediction.
func TestClassify_StatisticalPredictions(t *testing.T) {
	m := Train(trainedCorpus())
	word := rapid.SampledFrom([]string{"pay", "the", "invoice", "order", "lunch", "printer", "天气", "明天", "reset", "my", "zebra", "and", "```", "\xff", ".", "office"})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.Map(rapid.SliceOfN(word, 0, 12), func(w []string) string { return strings.Join(w, " ") }), rapid.String()).Draw(t, "text")
		checkPrediction(t, m, text)
	})
}

// TestTrain_NotFor checks that not_for texts lower the score.
func TestTrain_NotFor(t *testing.T) {
	const text = "order a new lunch table"
	before := Train(trainedCorpus()).scoreOf(text, "order_lunch")
	c := trainedCorpus()
	for i := range c.Intents {
		if c.Intents[i].Name == "order_lunch" {
			c.Intents[i].NotFor = []string{"order furniture", "order a table", "new lunch tables"}
		}
	}
	if after := Train(c).scoreOf(text, "order_lunch"); after >= before {
		t.Errorf("got score %v with not_for, want less than %v", after, before)
	}
}

// scoreOf returns the score of an intent before softmax.
func (m *Model) scoreOf(text, intent string) float32 {
	x := m.statistical.newScratch()
	w := token.NewScanner()
	x.features.Extract(&w, text)
	m.statistical.scoreText(&x, 1)
	i := m.intentNumber(intent)
	m.statistical.linear.scoreClasses(&x.scores, x.sums, x.known, x.values)
	m.statistical.linear.vector.addScores(x.scores.values, &x.features.Vector)
	return x.scores.values[i]
}

// TestClassify_StatisticalAllocations checks that a classification allocates
// only its results.
func TestClassify_StatisticalAllocations(t *testing.T) {
	m := Train(trainedCorpus())
	for _, text := range []string{"please pay the invoice from finance", "明天会下雨吗", strings.Repeat("order lunch and ", 500), "zebra"} {
		r := m.analyzeText("") // under the race detector the pool keeps nothing
		work := func() {
			r.analyze(text)
			p := Prediction{Intent: contract.Unknown}
			r.proposeDomains(&p)
			r.predictIntent(&p)
			r.applyLearnedDomain(&p)
		}
		work() // grows the buffers
		if got := testing.AllocsPerRun(50, work); got > 2 {
			t.Errorf("%.30q: got %v allocations, want at most 2", text, got)
		}
	}
}

func TestTrain_Descriptions(t *testing.T) {
	c := trainedCorpus()
	c.Intents[0].Descriptions = []string{"Transfers money to creditors by direct debit"}
	c.Intents[2].Descriptions = []string{"Shared by two intents about stationery"}
	c.Intents[3].Descriptions = []string{"Shared by two intents about stationery"}
	docs := mergeIntents(c.Intents)
	var described []string
	for _, u := range trainingTexts(docs, agentFamilies(docs).of) {
		if u.kind == kindDescription {
			described = append(described, docs[u.class].Name+": "+u.text)
		}
	}
	if diff := cmp.Diff([]string{"pay_invoice: Transfers money to creditors by direct debit"}, described); diff != "" {
		t.Errorf("descriptions learned from (-want +got):\n%s", diff)
	}
}

// TestTrain_DegenerateCorpora checks corpora that cannot be learned.
func TestTrain_DegenerateCorpora(t *testing.T) {
	texts := func(text func(i int) string) (list []string) {
		for i := range 80 {
			list = append(list, text(i))
		}
		return list
	}
	same := texts(func(i int) string { return fmt.Sprint("number ", i) })
	tests := map[string][2][]string{
		"no words":            {texts(func(i int) string { return strings.Repeat("🎉", i+1) }), texts(func(i int) string { return strings.Repeat("-", i+1) })},
		"equal texts in both": {same, same},
		"one word":            {texts(func(i int) string { return strings.Repeat("a ", i+1) }), texts(func(i int) string { return strings.Repeat("b ", i+1) })},
		"very long examples":  {texts(func(i int) string { return strings.Repeat(fmt.Sprint("word", i, " "), 500) }), same},
	}
	for name, examples := range tests {
		t.Run(name, func(t *testing.T) {
			m := Train(Corpus{Intents: []IntentDoc{{Name: "one", Examples: examples[0]}, {Name: "two", Examples: examples[1]}}})
			for _, text := range []string{"", "a", "b a", "number 7", "word1 word2", "🎉", "something else"} {
				checkPrediction(t, m, text)
				m.NewText(text).SplitRequests()
				m.Explain(text)
			}
			if got := m.AcceptThreshold(); math.IsNaN(got) || got < m.RejectThreshold() {
				t.Errorf("got %v to accept, want at least the threshold %v", got, m.RejectThreshold())
			}
		})
	}
}

// TestClassify_KeywordCountsForAllIntentsOfAgents uses names and keywords only.
func TestClassify_KeywordCountsForAllIntentsOfAgents(t *testing.T) {
	water, library := []string{"água", "leak"}, []string{"biblioteca", "book"}
	m := Train(Corpus{
		Intents: []IntentDoc{
			{Name: "report_broken_pipe", Agents: []string{"water"}, Keywords: water, Domains: []string{"utilities"}},
			{Name: "question_invoice", Agents: []string{"water"}, Keywords: water, Domains: []string{"utilities"}},
			{Name: "renew_loan", Agents: []string{"library"}, Keywords: library, Domains: []string{"reading"}},
			{Name: "cancel_membership", Agents: []string{"library"}, Keywords: library, Domains: []string{"reading"}},
		},
		Domains: []string{"utilities", "reading"},
	})
	tests := []struct{ text, best, next string }{
		{"por que a fatura da água veio tão cara", "question_invoice", "report_broken_pipe"},
		{"perdi minha carteirinha da biblioteca", "cancel_membership", "renew_loan"},
		{"cancel my gym contract", contract.Unknown, ""},      // one word of a name, and two unknown ones
		{"who won the match yesterday", contract.Unknown, ""}, // no word is known
	}
	for _, tt := range tests {
		p := m.Classify(tt.text)
		ok := p.Intent == tt.best
		if tt.next != "" { // either may be more likely
			ok = len(p.Alternatives) > 0 && cmp.Diff([]string{tt.best, tt.next}, slices.Sorted(slices.Values([]string{p.Intent, p.Alternatives[0].Intent}))) == ""
		}
		if !ok {
			t.Errorf("%q: got %s with %v and %v, want %s, and next %q", tt.text, p.Intent, p.Confidence, p.Alternatives, tt.best, tt.next)
		}
	}
}

// A text that is a keyword of one agent only, perhaps beside stop words, is for this agent,
// however many agents and keywords there are.
func TestClassify_KeywordAloneIsForItsAgent(t *testing.T) {
	agents := []struct {
		name              string
		intents, keywords []string
	}{
		{"registry_agent", []string{"residence_certificate", "marriage_booking", "birth_record"}, []string{"padrón", "empadronamiento", "boda", "certificate"}},
		{"streets_agent", []string{"report_pothole", "report_broken_streetlight", "request_street_cleaning"}, []string{"bache", "farola", "pothole", "streetlight", "hole", "limpieza"}},
		{"taxes_agent", []string{"property_tax", "tax_exemption", "pay_tax_bill"}, []string{"IBI", "recibo", "impuesto", "tax", "bonificación"}},
		{"traffic_agent", []string{"find_towed_car", "pay_traffic_fine", "resident_parking_permit"}, []string{"multa", "grúa", "fine", "tow", "zona azul", "parking"}},
		{"waste_agent", []string{"bulky_waste_pickup", "missed_collection"}, []string{"basura", "muebles", "contenedor", "rubbish", "furniture"}},
	}
	var c Corpus
	for _, a := range agents {
		for _, intent := range a.intents {
			c.Intents = append(c.Intents, IntentDoc{Name: intent, Agents: []string{a.name}, Keywords: a.keywords})
		}
	}
	m := Train(c)
	for _, a := range agents {
		for _, keyword := range a.keywords {
			for _, text := range []string{keyword, "la " + keyword, "the " + keyword + "?"} {
				p := m.Classify(text)
				together := 0.0
				if slices.Contains(a.intents, p.Intent) {
					together = p.Confidence
				}
				for _, other := range p.Alternatives {
					if slices.Contains(a.intents, other.Intent) {
						together += other.Confidence
					}
				}
				if together < 0.7 {
					t.Errorf("%q: got %s with %v and %v, want intents of %s with at least 0.7 together", text, p.Intent, p.Confidence, p.Alternatives, a.name)
				}
			}
		}
	}
}

// A keyword is declared for all intents of an agent, so that it is no reason to prefer one.
func TestClassify_KeywordAloneTiesIntentsOfItsAgent(t *testing.T) {
	agents := []struct {
		name              string
		intents, keywords []string
	}{
		{"taxes_agent", []string{"pay_tax_bill", "tax_certificate", "tax_deferral", "tax_refund", "appeal_tax_assessment", "change_tax_address", "tax_exemption"}, []string{"IBI", "plusvalía"}},
		{"permits_agent", []string{"building_permit", "event_permit"}, []string{"licencia", "obra"}},
		{"traffic_agent", []string{"pay_fine", "appeal_fine", "resident_parking"}, []string{"multa", "zona azul"}},
		{"waste_agent", []string{"report_missed_collection", "bulky_waste_pickup"}, []string{"contenedor"}},
		{"library_agent", []string{"renew_book", "reserve_room", "library_hours"}, []string{"biblioteca"}},
	}
	var c Corpus
	for _, a := range agents {
		for _, intent := range a.intents {
			c.Intents = append(c.Intents, IntentDoc{Name: intent, Agents: []string{a.name}, Keywords: a.keywords})
		}
	}
	m := Train(c)
	for _, a := range agents {
		listed := min(len(a.intents), 1+maxAlternatives)
		for _, keyword := range a.keywords {
			for _, text := range []string{keyword, "la " + keyword} {
				p := m.Classify(text)
				tied := append([]contract.IntentScore{{Intent: p.Intent, Confidence: p.Confidence}}, p.Alternatives...)[:listed]
				together := 0.0
				for _, next := range tied {
					if !slices.Contains(a.intents, next.Intent) || math.Abs(next.Confidence-p.Confidence) > 2e-4 { // they are rounded
						t.Errorf("%q: got %v, want intents of %s that are equally likely", text, tied, a.name)
						break
					}
					together += next.Confidence
				}
				if together < 0.7 {
					t.Errorf("%q: got %v, want at least 0.7 together", text, tied)
				}
			}
		}
	}
}

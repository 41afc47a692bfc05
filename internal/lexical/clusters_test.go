package lexical_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/lexical"
)

// threshold is the threshold of package tickets.
const threshold = 0.3

func demands() map[string][]string {
	return map[string][]string{
		"flights":   {"book a flight to Lisbon", "I need to book two flights for Monday"},
		"contracts": {"revise este contrato de aluguel", "preciso que alguém revise um contrato"},
		"payroll":   {"run the payroll report for June"},
		"tickets":   {"帮我订一张去上海的机票"},
		"nothing":   {"[EMAIL_1]", "?!"},
	}
}

func clusterTexts(of map[string][]string) *lexical.ClusterIndex {
	g := lexical.NewClusterIndex()
	for id, texts := range of {
		g.Set(id, texts)
	}
	return g
}

func TestClusterIndex_Nearest(t *testing.T) {
	g := clusterTexts(demands())
	tests := []struct {
		name, text, want string
		joins            bool
	}{
		{"equal", "book a flight to Lisbon", "flights", true},
		{"in other words", "please book me a flight for Tuesday", "flights", true},
		{"inflected", "booking flights", "flights", true},
		{"misspelt beside right words", "please book a flihgt to Lisbon on Monday", "flights", true},
		{"shorter", "flights", "flights", true},
		{"another thing to do", "cancel my flight to Lisbon", "", false},
		{"short and misspelt", "book a fligth", "", false},
		{"longer, with another thing", "book a hotel in Lisbon for Monday morning", "flights", true},
		{"with another thing", "book a hotel in Lisbon", "", false},
		{"in the same place", "what is the weather in Lisbon", "", false},
		{"accents and case", "REVISE ESTE CONTRATO", "contracts", true},
		{"Chinese", "订一张去北京的机票", "tickets", true},
		{"Chinese, another thing to do", "取消去上海的机票", "", false},
		{"common word", "report a broken chair in the kitchen", "payroll", false},
		{"only what holds sentences together", "what is it for", "", false},
		{"no common word", "translate the menu", "", false},
		{"no words at all", "?! [PHONE_1]", "", false},
		{"empty", "", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id, similarity := g.Nearest(tt.text)
			if (similarity >= threshold) != tt.joins || tt.joins && id != tt.want {
				t.Errorf("got %q with %.2f, want %q and joined: %v", id, similarity, tt.want, tt.joins)
			}
		})
	}
}

// A word of every cluster does not distinguish them.
func TestClusterIndex_CommonWordsWeighLittle(t *testing.T) {
	g := lexical.NewClusterIndex()
	g.Set("a", []string{"weekly report about parking"})
	_, alone := g.Nearest("weekly report about catering")
	for i := range 30 {
		g.Set(fmt.Sprint("b", i), []string{fmt.Sprintf("weekly report about subject%d", i)})
	}
	if _, among := g.Nearest("weekly report about catering"); among >= alone-0.1 {
		t.Errorf("got %.2f among many weekly reports, want clearly less than %.2f", among, alone)
	}
}

func TestClusterIndex_SetAndRemove(t *testing.T) {
	g := clusterTexts(demands())
	g.Set("flights", []string{"rent a car"})
	if id, s := g.Nearest("book a flight to Lisbon"); id == "flights" {
		t.Errorf("got %s with %.2f after it was set to something else", id, s)
	}
	if id, _ := g.Nearest("rent a car"); id != "flights" {
		t.Errorf("got %q, want flights", id)
	}
	g.Set("flights", nil)
	g.Remove("payroll")
	g.Remove("not there")
	if got, want := g.Len(), len(demands())-2; got != want {
		t.Errorf("got %d groups, want %d", got, want)
	}
	if id, s := g.Nearest("rent a car"); id != "" || s != 0 {
		t.Errorf("got %q with %.2f, want nothing", id, s)
	}
}

// The result depends neither on the order nor on removed clusters.
func TestClusterIndex_DoesNotDependOnOrder(t *testing.T) {
	word := rapid.SampledFrom([]string{"book", "flight", "report", "the", "contrato", "机票", "[EMAIL_1]", "flights", "x"})
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(word, 0, 6).Draw(t, "words"), " ")
	})
	rapid.Check(t, func(t *rapid.T) {
		want := map[string][]string{}
		used := lexical.NewClusterIndex()
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			id := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "id")
			texts := rapid.SliceOfN(text, 0, 3).Draw(t, "texts")
			used.Set(id, texts)
			if want[id] = texts; len(texts) == 0 {
				delete(want, id)
			}
		}
		ask := text.Draw(t, "ask")
		type answer struct {
			ID         string
			Similarity float64
		}
		var got, fresh answer
		got.ID, got.Similarity = used.Nearest(ask)
		fresh.ID, fresh.Similarity = clusterTexts(want).Nearest(ask)
		if diff := cmp.Diff(fresh, got); diff != "" {
			t.Fatalf("%q among %v (-fresh +used):\n%s", ask, want, diff)
		}
		if got.Similarity < 0 || got.Similarity > 1 || (got.ID == "") != (got.Similarity == 0) {
			t.Fatalf("got %+v, want a similarity of 0 to 1, and an id with it", got)
		}
		for id, texts := range want {
			if len(texts) != 1 || len(want) != 1 {
				continue
			}
			own := 0.0
			if len(lexical.ContentWords(texts[0])[0]) > 0 {
				own = 1
			}
			if _, s := used.Nearest(texts[0]); math.Abs(s-own) > 0.001 {
				t.Fatalf("%s: got %v for its own text, want %v", id, s, own)
			}
		}
	})
}

func TestAsksNothing(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "?!": true, "please help me": true,
		"hello": true, "Good morning!": true, "Thank you very much": true, "thanks, bye": true, "hi, how are you?": true,
		"hola buenos días": true, "Hola, ¿qué tal?": true, "muchas gracias": true, "¡Buenas tardes!": true,
		"olá, tudo bem?": true, "Bom dia": true, "boa noite, obrigada": true, "muito obrigado": true,
		"good morning, cancel my order": false, "thanks for the invoice": false, "hello world program": false,
		"hola, no funciona": false, "bom dia, quero um reembolso": false, "goodbye letter": false, "7": false, "订机票": false,
	} {
		if got := lexical.AsksNothing(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestContentWords(t *testing.T) {
	got := lexical.ContentWords(
		"Please book me a Flight, a flight to Lisbon",
		"Revisão do código",
		"mail [EMAIL_1] ```\nsecret()\n``` now",
		"订机票",
		"Сделай еще расче\u0308т, сделай",
		"",
	)
	want := [][]string{{"book", "flight", "lisbon"}, {"revisao", "codigo"}, {"mail", "now"}, {"订", "机票"}, {"сделай", "еще", "расчёт"}, nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
}

// TestClusterIndex_PublicSets clusters requests of a few intents in random order, like package
// tickets, and checks minimum values for the purity of the clusters.
func TestClusterIndex_PublicSets(t *testing.T) {
	tests := []struct {
		name                  string
		file                  []string
		intents               int
		precision, right, all float64 // at least
	}{
		{"CLINC150, 10 intents", []string{"data", "clinc150", "val.tsv"}, 10, 0.93, 0.90, 0.20},
		{"CLINC150, 40 intents", []string{"data", "clinc150", "val.tsv"}, 40, 0.85, 0.83, 0.25},
		{"MASSIVE, Spanish, 10 intents", []string{"data", "massive", "es-ES", "val.tsv"}, 10, 0.95, 0.95, 0.05},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rows := readTSV(t, tt.file)
			if p := clusterOften(rows, tt.intents, 3); !p.reaches(t, tt.precision, tt.right, tt.all) {
				t.Errorf("want at least %v of the pairs, %v of the joins, %v together", tt.precision, tt.right, tt.all)
			}
		})
	}
}

// TestClusterIndex_ShortRequests is like TestClusterIndex_PublicSets, with short requests, most of
// which differ in one word: the action or its object.
func TestClusterIndex_ShortRequests(t *testing.T) {
	data, err := os.ReadFile("testdata/short_requests.tsv")
	if err != nil {
		t.Fatal(err)
	}
	byLanguage := map[string][]utterance{}
	for line := range strings.Lines(string(data)) {
		text, demand, _ := strings.Cut(strings.TrimSpace(line), "\t")
		language, _, _ := strings.Cut(demand, "-")
		byLanguage[language] = append(byLanguage[language], utterance{text, demand})
	}
	tests := []struct {
		language              string
		precision, right, all float64 // at least
	}{
		{"en", 0.90, 0.90, 0.70},
		{"pt", 0.90, 0.90, 0.70},
		{"es", 0.90, 0.90, 0.70},
		{"zh", 0.90, 0.90, 0.50},
	}
	for _, tt := range tests {
		t.Run(tt.language, func(t *testing.T) {
			rows := byLanguage[tt.language]
			if p := clusterOften(rows, len(rows), 20); !p.reaches(t, tt.precision, tt.right, tt.all) {
				t.Errorf("want at least %v of the pairs, %v of the joins, %v together", tt.precision, tt.right, tt.all)
			}
		})
	}
}

type purity struct{ precision, right, all, groups float64 }

func (p *purity) reaches(t *testing.T, precision, right, all float64) bool {
	t.Logf("%.1f groups an intent; %.3f of the pairs in a group are right, %.3f of the joins; %.3f of the pairs of one intent are together",
		p.groups, p.precision, p.right, p.all)
	return p.precision >= precision && p.right >= right && p.all >= all
}

// clusterOften returns the mean over random orders.
func clusterOften(rows []utterance, intents, rounds int) *purity {
	var mean purity
	n := float64(rounds)
	for seed := range uint64(rounds) {
		p := clusterRequests(rows, intents, rand.New(rand.NewPCG(seed, 1)))
		mean.precision += p.precision / n
		mean.right += p.right / n
		mean.all += p.all / n
		mean.groups += p.groups / n
	}
	return &mean
}

func clusterRequests(rows []utterance, intents int, r *rand.Rand) purity {
	var names []string
	for _, row := range rows {
		if !slices.Contains(names, row.intent) {
			names = append(names, row.intent)
		}
	}
	r.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
	names = names[:min(intents, len(names))]
	var stream []utterance
	for _, row := range rows {
		if slices.Contains(names, row.intent) {
			stream = append(stream, row)
		}
	}
	r.Shuffle(len(stream), func(i, k int) { stream[i], stream[k] = stream[k], stream[i] })
	stream = stream[:min(len(stream), 800)]

	const mostExamples = 20
	g := lexical.NewClusterIndex()
	texts, begun, members := map[string][]string{}, map[string]string{}, map[string]map[string]int{}
	joined, right := 0, 0
	for i, row := range stream {
		id, similarity := g.Nearest(row.text)
		if similarity >= threshold {
			joined++
			if begun[id] == row.intent {
				right++
			}
		} else {
			id = fmt.Sprintf("%04d", i)
			begun[id], members[id] = row.intent, map[string]int{}
		}
		members[id][row.intent]++
		texts[id] = append(texts[id], row.text)
		texts[id] = texts[id][max(0, len(texts[id])-mostExamples):]
		g.Set(id, texts[id])
	}
	pairs := func(n int) int { return n * (n - 1) / 2 }
	together, same, total, of := 0, 0, 0, map[string]int{}
	for _, m := range members {
		size := 0
		for intent, n := range m {
			same += pairs(n)
			size += n
			of[intent] += n
		}
		together += pairs(size)
	}
	for _, n := range of {
		total += pairs(n)
	}
	return purity{share(same, together), share(right, joined), share(same, total), share(len(members), len(names))}
}

// BenchmarkClusterIndex_Nearest searches among ten thousand clusters.
func BenchmarkClusterIndex_Nearest(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	g := lexical.NewClusterIndex()
	for i := range 10_000 {
		var texts []string
		for range 5 {
			texts = append(texts, fmt.Sprintf("please handle thing%d of kind%d for unit%d", i, r.IntN(500), r.IntN(50)))
		}
		g.Set(fmt.Sprint(i), texts)
	}
	b.ReportAllocs()
	for b.Loop() {
		g.Nearest("could you handle thing77 of kind8 for unit9 today")
	}
}

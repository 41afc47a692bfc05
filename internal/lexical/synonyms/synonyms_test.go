package synonyms

import (
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/lexical/lexicon"
	"github.com/caprouter/caprouter/internal/lexical/token"
	"github.com/caprouter/caprouter/internal/wordvectors"
)

// TestSynonyms_AreUnambiguous checks that no word is in two lines, and none is a stop word.
func TestSynonyms_AreUnambiguous(t *testing.T) {
	stops, lines := token.StopWords(), map[string]int{}
	number := 0
	for line := range strings.Lines(lexicon.Synonyms) {
		number++
		for word := range strings.FieldsSeq(strings.ReplaceAll(line, "|", " ")) {
			stem := token.StemOf(word) // of a phrase, with its underscores
			if other, ok := lines[stem]; ok && other != number {
				t.Errorf("got %q in the lines %d and %d, want one", word, other, number)
			}
			if lines[stem] = number; stops[word] {
				t.Errorf("got the stop word %q", word)
			}
		}
	}
}

// Each line is needed: its English word has a vector, and the others have none.
func TestTranslations_AddVectors(t *testing.T) {
	stops, known, tokens, previous := token.StopWords(), knownMeanings(), token.NewScanner(), ""
	for line := range strings.Lines(lexicon.Translations) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] <= previous {
			t.Errorf("got %q not sorted, or without a translation", line)
			continue
		}
		previous = words[0]
		if _, ok := wordvectors.Lookup([]byte(words[0])); !ok || stops[words[0]] {
			t.Errorf("got %q without a vector, or as a stop word", words[0])
		}
		for _, w := range words[1:] {
			if _, english := wordvectors.Lookup([]byte(w)); english || stops[w] || known.vectors[token.StemOf(w)] != nil {
				t.Errorf("got %q of %q with its own vector, or as a stop word", w, words[0])
			}
			if tokens.Reset(w); !tokens.Next() || string(tokens.Word) != w {
				t.Errorf("got %q of %q not folded", w, words[0])
			}
		}
	}
}

// Each line is needed: a Chinese word is on one line only and no stop word, and its English word
// has a meaning or a vector, which only a single word can have.
func TestChinese_AddsMeanings(t *testing.T) {
	stops, tokens, meanings, on := token.StopWords(), token.NewScanner(), map[string]bool{}, map[string]string{}
	for entry := range strings.FieldsSeq(lexicon.Synonyms) {
		meanings[entry] = true
	}
	for line := range strings.Lines(lexicon.Chinese) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		_, hasVector := wordvectors.Lookup([]byte(words[0]))
		if len(words) == 1 || !meanings[words[0]] && !hasVector {
			t.Errorf("got %q without a Chinese word, or without a meaning", line)
		}
		for _, w := range words[1:] {
			if on[w] != "" || stops[w] {
				t.Errorf("got %q for %s, want one line and no stop word: it is one for %q", w, words[0], on[w])
			}
			on[w] = words[0]
			n := 0
			for tokens.Reset(w); tokens.Next(); {
				n++
			}
			if n == 0 || n > 1 && !meanings[words[0]] || n > MaxPhraseWords {
				t.Errorf("got %q for %s read as %d words", w, words[0], n)
			}
		}
	}
}

func TestIsInflection(t *testing.T) {
	tests := []struct {
		listed     string
		yes, other []string
	}{
		{"analisar", []string{"analisa", "analise", "analiso"}, []string{"analis", "analisao"}},
		{"report", []string{"reports", "reported", "reporting", "reportar", "reporte"}, nil},
		{"plan", []string{"plans", "planning", "planned"}, []string{"planing"}},
		{"route", []string{"routing", "routed", "routes"}, []string{"routting"}},
		{"car", []string{"cars"}, []string{"caring", "care", "cared"}},
		{"recycling", []string{"recycle", "recycled"}, nil},
		{"training", []string{"trained", "trainings"}, []string{"train"}},
		{"mopping", []string{"mop", "mopped"}, []string{"moping", "mope"}},
		{"abierto", []string{"abierta", "abiertas"}, nil},
		{"cuenta", []string{"cuentas"}, []string{"cuento"}},
		{"cidadao", []string{"cidadaos"}, []string{"cidade"}},
		{"music", []string{"musica", "musicas"}, nil},
		{"rede", []string{"redes"}, []string{"red"}},
	}
	for _, tt := range tests {
		for i, words := range [][]string{tt.yes, tt.other} {
			for _, word := range words {
				same := token.StemOf(word) == token.StemOf(tt.listed)
				got := same && isInflection([]byte(word), []byte(tt.listed), []byte(token.StemOf(word)))
				if want := i == 0; got != want {
					t.Errorf("%q of %q: got %t, want %t", word, tt.listed, got, want)
				}
			}
		}
	}
}

// A word in another language has the vector of its meaning.
func TestVector_OfSynonyms(t *testing.T) {
	vectorOf := func(word string) *wordvectors.Vector {
		v, _, ok := Vector([]byte(word), []byte(token.StemOf(word)))
		if !ok {
			t.Fatalf("got no vector of %s", word)
		}
		return &v
	}
	if got := wordvectors.Cosine(vectorOf("fatura"), vectorOf("invoice")); got < 0.5 {
		t.Errorf("got the similarity %.2f of fatura and invoice, want at least 0.5", got)
	}
	for _, word := range []string{"the", "para", "zzqxv", "风湿"} {
		if _, _, ok := Vector([]byte(word), []byte(token.StemOf(word))); ok {
			t.Errorf("got a vector of %q, want none", word)
		}
	}
}

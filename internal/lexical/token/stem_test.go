package token

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestStem checks forms of the same word in several languages.
func TestStem(t *testing.T) {
	for language, groups := range map[string][]string{
		"English": {
			"review reviews reviewing reviewed", "code codes coding coded", "query queries queried", "analysis analyses analyse analyze analyzing analysed",
			"plan plans planning planned", "bill bills billing billed", "price prices pricing priced", "class classes", "box boxes", "api apis",
			"test tests testing tested", "deploy deploys deploying deployed", "optimize optimise optimizing optimised", "stop stops stopping stopped",
			"employee employees", "policy policies", "employ employs employing", "database databases", "index indexes",
			"notebook notebooks", "dependency dependencies", "apply applied", "day days", "key keys", "house houses housing", "pass passes passing",
		},
		"Portuguese": {
			"função funções", "código códigos", "relatório relatórios", "analise análise análises analisa analisar", "revise revisa revisar",
			"erro erros", "teste testes", "custo custos", "fatura faturas", "servidor servidores", "documentação documentações", "calcula calcule calcular",
		},
		"Spanish": {
			"función funciones", "código códigos", "error errores", "analiza analizar", "revisa revise revisar",
			"coste costes", "factura facturas", "prueba pruebas", "servidor servidores", "cuaderno cuadernos", "calcula calcule calcular",
		},
		"across languages": {
			"analysis análisis análise analisar analiza", "modelo model modelos", "service serviço", "formato format", "sistema system", "coste cost",
			"test teste", "reporte report",
		},
	} {
		for _, group := range groups {
			words := strings.Fields(group)
			for _, word := range words {
				if got, want := foldedStem(word), foldedStem(words[0]); got != want {
					t.Errorf("%s: %s: got stem %q, want %q as %s", language, word, got, want, words[0])
				}
			}
		}
	}
}

// TestStem_KeepsDifferentWordsApart checks similar but different words.
func TestStem_KeepsDifferentWordsApart(t *testing.T) {
	for _, pair := range [][2]string{
		{"cost", "costa"},
		{"news", "new"},
		{"string", "str"},
		{"code", "coder"},
		{"data", "date"},
		{"speed", "spe"},
		{"python", "pylon"},
		{"king", "k"},
		{"thing", "th"},
		{"class", "clas"},
		{"need", "ne"},
		{"red", "r"},
		{"java", "javascript"},
		{"use", "us"},
		{"spring", "spr"},
		{"review", "preview"},
		{"port", "porta"},
		{"banco", "bank"},
	} {
		if foldedStem(pair[0]) == foldedStem(pair[1]) {
			t.Errorf("got %s and %s with one stem %q, want two", pair[0], pair[1], foldedStem(pair[0]))
		}
	}
}

// TestFoldNumber checks that names of domains are compared without the plural.
func TestFoldNumber(t *testing.T) {
	for _, pair := range [][2]string{{"account", "accounting"}, {"market", "marketing"}, {"model", "modelo"}, {"train", "training"}, {"host", "hosted"}} {
		if singularOf(pair[0]) == singularOf(pair[1]) {
			t.Errorf("got %s and %s as one name, want two", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{"notebook", "Notebooks"}, {"policy", "POLICIES"}, {"função", "funcoes"}, {"kubernetes", "Kubernetes"}} {
		if got, want := singularOf(pair[1]), singularOf(pair[0]); got != want {
			t.Errorf("%s: got %q, want %q as %s", pair[1], got, want, pair[0])
		}
	}
}

// TestFoldNumber_PluralOfAnyWord checks the plural of words that end in a
// consonant or in a, o or u.
func TestFoldNumber_PluralOfAnyWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z]{2,9}[bcdfgklmnprtvwaou]`).Draw(t, "word")
		if word == "new" || strings.HasSuffix(word, "ao") || len(word) < 4 && strings.HasSuffix(word+"s", "e") {
			return
		}
		if got, want := singularOf(word+"s"), singularOf(word); got != want {
			t.Errorf("%ss: got %q, want %q as %s", word, got, want, word)
		}
	})
}

// TestStem_AnyInput checks that no word becomes empty or longer.
func TestStem_AnyInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SliceOfN(rapid.Byte(), 1, 12).Draw(t, "word")
		n := len(word)
		form := FoldNumber(word)
		if len(form) == 0 || len(form) > n {
			t.Errorf("got %q of %d bytes, want 1 to %d", form, len(form), n)
		}
		if s := Stem(form); len(s) == 0 || len(s) > n {
			t.Errorf("got %q of %d bytes, want 1 to %d", s, len(s), n)
		}
	})
}

func foldedStem(word string) string { return string(Stem(FoldNumber(folded(word)))) }

func singularOf(word string) string { return string(FoldNumber(folded(word))) }

func folded(word string) []byte {
	w := NewScanner()
	w.Reset(word)
	w.Next()
	return w.Word
}

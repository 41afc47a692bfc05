package negation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/lexical/negation"
)

// words divides a text at spaces; "," is no word, and the next one begins a clause.
func words(text string) (list []negation.Word) {
	begins := true
	for w := range strings.FieldsSeq(text) {
		if w == "," {
			begins = true
			continue
		}
		list = append(list, negation.Word{Text: w, Begins: begins})
		begins = false
	}
	return list
}

func TestFindVerbs(t *testing.T) {
	for text, want := range map[string][]string{
		"don t cancel it":                       {"cancel"},
		"i am late , do not cancel it":          {"cancel"},
		"i am late but please do not cancel it": {"cancel"},
		"i don t want you to cancel it":         {"cancel"},
		"do not pay and do not renew":           {"pay", "renew"},
		"they charged me and do not refund":     nil,
		"you say that but do not refund":        nil,
		"my emails just don t send":             nil,
		"never refunded my payment":             nil,
		"no imprime el documento":               nil,
		"no pague la factura":                   nil,
		"no quiero cancelar":                    {"cancelar"},
		"no quiero que canceles":                {"canceles"},
		"no me canceles":                        {"canceles"},
		"nao preciso pagar":                     {"pagar"},
		"they do not cancel it":                 nil,
		"so why don t you cancel it":            nil,
		"la pagina no cancela":                  nil,
		"no funciona":                           nil,
		"do not":                                nil,
		"":                                      nil,
	} {
		if diff := cmp.Diff(want, negation.FindVerbs(words(text))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestMayBegin(t *testing.T) {
	for _, text := range []string{"don t cancel", "do not cancel", "dont cancel", "didn t want to cancel", "no need to cancel", "no quiero cancelar", "nao quero cancelar", "nao canceles"} {
		list := words(text)
		if len(negation.FindVerbs(list)) == 0 || !negation.MayBegin([]byte(list[0].Text)) {
			t.Errorf("%q: got no negation that the first word may begin", text)
		}
	}
}

package lexical

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical/token"
)

// A word that is in neither the registry nor the list of synonyms has the vector of its
// translations.
func TestClassify_Translations(t *testing.T) {
	m := Train(Corpus{Intents: []IntentDoc{
		{Name: "forecast", Examples: []string{"will it rain in the north", "how strong is the wind tomorrow"}},
		{Name: "lend_tools", Examples: []string{"may I borrow the hammer", "I need a ladder on Monday"}},
		{Name: "visit_doctor", Examples: []string{"my knee hurts", "the nurse should look at my throat"}},
	}})
	for text, want := range map[string]string{
		"habrá niebla o nieve": "forecast", "vai haver neblina ou neve": "forecast",
		"un martillo y un destornillador": "lend_tools", "uma chave de fendas e um martelo": "lend_tools",
		"me duele la rodilla": "visit_doctor", "dor de garganta": "visit_doctor",
	} {
		if p := m.Classify(text); p.BestIntent != want {
			t.Errorf("%q: got %s with %v, want %s", text, p.BestIntent, p.Confidence, want)
		}
	}
}

// Chinese requests reach intents whose names or examples are in another language, or in other
// Chinese words.
func TestClassify_Chinese(t *testing.T) {
	english := Train(Corpus{Intents: []IntentDoc{
		{Name: "resend_invoice"}, {Name: "reset_password"}, {Name: "request_vacation"}, {Name: "track_parcel"},
	}})
	chinese := Train(Corpus{Intents: []IntentDoc{
		{Name: "payroll", Examples: []string{"这个月工资什么时候发", "工资单在哪里看", "年终奖怎么算"}},
		{Name: "door_cards", Keywords: []string{"门禁卡"}, Examples: []string{"门禁卡刷不开", "给家人办一张门禁卡", "门卡坏了"}},
		{Name: "parking", Examples: []string{"我要租一个停车位", "车位到期了", "停车怎么收费"}},
	}})
	for _, tt := range []struct {
		model        *Model
		text, intent string
	}{
		{english, "请把发票再发一遍", "resend_invoice"},
		{english, "密码忘了怎么办", "reset_password"},
		{english, "我还有几天年假", "request_vacation"},
		{english, "快递到哪里了", "track_parcel"},
		{english, "讲个笑话", ""},
		{chinese, "薪水少了五百块", "payroll"},
		{chinese, "门禁卡丢了补一张多少钱", "door_cards"},
		{chinese, "什么时候有空的车位", "parking"},
		{chinese, "讲个笑话", ""},
	} {
		if p := tt.model.Classify(tt.text); tt.intent == "" && p.Intent != contract.Unknown || tt.intent != "" && p.BestIntent != tt.intent {
			t.Errorf("%q: got %s, best %s with %v, want %q", tt.text, p.Intent, p.BestIntent, p.Confidence, tt.intent)
		}
	}
}

func TestClassify_Synonyms(t *testing.T) {
	m := Train(Corpus{Intents: []IntentDoc{
		{Name: "resend_invoice"}, {Name: "reset_password"}, {Name: "request_vacation"}, {Name: "track_parcel"},
	}})
	tests := []struct{ text, intent string }{
		{"a segunda via da fatura", "resend_invoice"},
		{"necesito mi factura otra vez", "resend_invoice"},
		{"esqueci a minha senha", "reset_password"},
		{"olvidé mi contraseña", "reset_password"},
		{"how many days of holiday do I have", "request_vacation"},
		{"where is my package", "track_parcel"},
		{"tell me a joke", ""},
	}
	for _, tt := range tests {
		if p := m.Classify(tt.text); tt.intent == "" && p.Intent != contract.Unknown || tt.intent != "" && p.BestIntent != tt.intent {
			t.Errorf("%q: got %s, best %s with %v, want %q", tt.text, p.Intent, p.BestIntent, p.Confidence, tt.intent)
		}
	}
}

// TestClassify_SynonymOfDeclaredWord checks that a word of the corpus keeps its own meaning.
func TestClassify_SynonymOfDeclaredWord(t *testing.T) {
	m := Train(Corpus{Intents: []IntentDoc{{Name: "send_invoice"}, {Name: "print_receipt"}}})
	for text, want := range map[string]string{"the invoice please": "send_invoice", "the receipt please": "print_receipt"} {
		if p := m.Classify(text); p.BestIntent != want {
			t.Errorf("%q: got %s, want %s", text, p.BestIntent, want)
		}
	}
}

// A synonym means the word of an intent rather than that of a domain, which would leave open
// what to do.
func TestClassify_SynonymOfIntentAndDomain(t *testing.T) {
	m := Train(Corpus{
		Domains: []string{"billing", "shipping"},
		Intents: []IntentDoc{
			{Name: "invoice_request", Agents: []string{"billing_agent"}, Domains: []string{"billing"}},
			{Name: "request_refund", Agents: []string{"billing_agent"}, Domains: []string{"billing"}},
			{Name: "track_parcel", Agents: []string{"shipping_agent"}, Domains: []string{"shipping"}},
		},
	})
	for text, want := range map[string]string{
		"me manda a fatura": "invoice_request", "necesito la factura": "invoice_request", "meu pacote": "track_parcel", "mi paquete": "track_parcel",
	} {
		if p := m.Classify(text); p.Intent != want {
			t.Errorf("%q: got %s, best %s with %v, want %s", text, p.Intent, p.BestIntent, p.Confidence, want)
		}
	}
}

// A word that only has the stem of a synonym does not mean the same.
func TestReplaceWord_SameStemByAccident(t *testing.T) {
	m := Train(Corpus{Intents: []IntentDoc{{
		Name: "find_parking", Keywords: []string{"course", "invoice", "urn", "documents", "review", "website", "automobile", "assessment", "oncall", "folder", "contract"},
	}}})
	for word, want := range map[string]string{
		"estacionar": "parking", "estaciono": "parking", "estacione": "parking", "estacion": "", "estaciones": "",
		"training": "course", "trainings": "course", "train": "", "carpetas": "folder", "carpet": "", "rating": "assessment", "rat": "",
		"revisa": "review", "revisen": "review", "revised": "review", "site": "website", "sitting": "", "cars": "automobile", "caring": "",
		"plantao": "oncall", "planta": "", "acordos": "contract", "acordar": "", "diretorios": "folder", "diretoria": "", "docs": "documents", "doce": "",
	} {
		got, kind := m.replaceWord([]byte(word), []byte(token.StemOf(word)))
		if kind == EvidenceTypo {
			got = ""
		}
		if got != want && token.StemOf(got) != token.StemOf(want) {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
	station := Train(Corpus{Intents: []IntentDoc{{Name: "find_estacion"}, {Name: "pay_invoice"}}})
	if got, _ := station.replaceWord([]byte("parking"), []byte("park")); got != "" {
		t.Errorf("got %q for parking in a registry with a station, want none", got)
	}
}

func TestClassify_Phrases(t *testing.T) {
	m := Train(Corpus{Intents: []IntentDoc{
		{Name: "request_refund", Agents: []string{"a"}}, {Name: "request_vacation", Agents: []string{"b"}}, {Name: "track_parcel", Agents: []string{"c"}},
	}})
	tests := []struct{ text, intent string }{
		{"I want my money back", "request_refund"},
		{"quero o dinheiro de volta", "request_refund"},
		{"two days off next week please", "request_vacation"},
		{"give me back the money", ""}, // other words
		{"the money", ""},              // the beginning of a phrase
	}
	for _, tt := range tests {
		if p := m.Classify(tt.text); tt.intent == "" && p.Intent != contract.Unknown || tt.intent != "" && p.Intent != tt.intent {
			t.Errorf("%q: got %s, best %s with %v, want %q", tt.text, p.Intent, p.BestIntent, p.Confidence, tt.intent)
		}
	}
}

func TestListEvidence_Synonym(t *testing.T) {
	m := Train(Corpus{Intents: []IntentDoc{{Name: "refund_status"}, {Name: "reset_password"}}})
	for _, want := range []EvidenceItem{
		{Text: "password", Intent: "reset_password", RequestText: "Senha"},
		{Text: "refund", Intent: "refund_status", RequestText: "my money back"},
	} {
		want.Kind, want.Strength = EvidenceSynonym, synonymStrength
		items := m.ListEvidence("about "+want.RequestText, 5, func(string) bool { return true })
		if diff := cmp.Diff([]EvidenceItem{want}, items); diff != "" {
			t.Errorf("about %s (-want +got):\n%s", want.RequestText, diff)
		}
	}
}

// Evidence does not list a keyword or name as contained if the text only has a synonym of its
// word, and the domain is not named.
func TestClassify_SynonymIsNoName(t *testing.T) {
	m := Train(Corpus{
		Domains: []string{"appointments", "refunds"}, Aliases: map[string][]string{"refunds": {"repayment"}},
		Intents: []IntentDoc{
			{Name: "book_appointment", Keywords: []string{"appointment"}, Domains: []string{"appointments"}},
			{Name: "request_refund", Keywords: []string{"refund"}, Domains: []string{"refunds"}},
		},
	})
	tests := []struct{ text, domains, evidence string }{
		{"book a meeting room", "appointments alias meeting", "synonym appointment 0.9, name book_appointment 0.5 without appointment"},
		{"book a meeting for my appointment", "appointments named", "keyword appointment 1, name book_appointment 1, synonym appointment 0.9"},
		{"the Money  back please", "refunds alias Money  back", "synonym refund 0.9"},
		{"money\nback", "refunds alias back", "synonym refund 0.9"},
	}
	for _, tt := range tests {
		p := m.Classify(tt.text)
		if got := strings.TrimSpace(strings.Join(p.Domains, " ") + " " + string(p.DomainOrigin) + " " + p.DomainTexts[0]); got != tt.domains {
			t.Errorf("%q: got domains %q, want %q", tt.text, got, tt.domains)
		}
		var got []string
		for _, item := range m.ListEvidence(tt.text, 5, func(intent string) bool { return intent == p.BestIntent }) {
			line := fmt.Sprintf("%s %s %.1g", item.Kind, item.Text, item.Strength)
			if len(item.Missing) > 0 {
				line += " without " + strings.Join(item.Missing, " ")
			}
			got = append(got, line)
		}
		slices.Sort(got)
		want := strings.Split(tt.evidence, ", ")
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: evidence (-want +got):\n%s", tt.text, diff)
		}
	}
}

// The singular by which words are compared, such as "invoic", is not printed.
func TestListEvidence_SynonymIsWordOfRegistry(t *testing.T) {
	for _, want := range []string{"invoice", "invoices"} {
		m := Train(Corpus{Intents: []IntentDoc{{Name: "pay", Examples: []string{"explain the " + want}}, {Name: "book", Examples: []string{"reserve a cabin"}}}})
		var got []string
		for _, item := range m.ListEvidence("essa fatura", 5, func(string) bool { return true }) {
			if item.Kind == EvidenceSynonym {
				got = append(got, item.Text)
			}
		}
		if diff := cmp.Diff([]string{want}, got); diff != "" {
			t.Errorf("synonyms (-want +got):\n%s", diff)
		}
	}
}

// TestReplaceWord_LeavesCommonWords checks that a common word does not count as a misspelling.
func TestReplaceWord_LeavesCommonWords(t *testing.T) {
	m := Train(Corpus{Intents: []IntentDoc{{Name: "buy_shoes"}, {Name: "book_train"}}})
	for word, want := range map[string]string{"shose": "shoes", "those": "", "show": "", "trian": "train"} {
		if got, _ := m.replaceWord([]byte(word), []byte(token.StemOf(word))); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

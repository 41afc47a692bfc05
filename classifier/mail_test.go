package classifier_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
)

// freightRegistry has agents whose words are also in job titles and subjects of mails.
func freightRegistry() *capabilities.Catalogue {
	agent := func(domain, keywords string, examples map[string][]string) *contract.RegistryEntry {
		var intents []string
		for intent := range examples {
			intents = append(intents, intent)
		}
		slices.Sort(intents)
		return &contract.RegistryEntry{
			ID: domain + "_agent", Match: contract.Match{Intent: intents, Domains: []string{domain}},
			Keywords: strings.Fields(keywords), Examples: examples,
		}
	}
	return snapshot(
		agent("tracking", "", map[string][]string{"track_container": {
			"where is my container?", "track my shipment", "when does my container arrive?", "onde está meu contêiner?", "cadê meu contêiner",
			"dónde está mi contenedor", "我的集装箱在哪里",
		}}),
		agent("customs", "customs alfândega aduana", map[string][]string{"clear_customs": {
			"is my cargo cleared by customs?", "which papers does customs need?", "customs clearance for my shipment", "liberação na alfândega",
			"despacho de aduana", "清关需要什么文件",
		}}),
		agent("booking", "", map[string][]string{
			"book_freight":   {"book a container from Santos to Rotterdam", "I need space on a vessel", "reservar um contêiner", "reservar un contenedor"},
			"cancel_booking": {"please cancel my booking", "cancel the booking", "cancelar minha reserva", "cancela mi reserva", "取消我的订舱"},
		}),
		agent("invoice", "invoice fatura factura 发票 billing", map[string][]string{"invoice_question": {
			"why is my invoice so high?", "send me the invoice of May", "segunda via da fatura", "mi factura está mal", "发票有问题",
		}}),
	)
}

// intentsOf returns the intents that a classification asks for.
func intentsOf(clf *contract.Classification) string {
	if len(clf.Subtasks) == 0 {
		return clf.Intent
	}
	var list []string
	for _, s := range clf.Subtasks {
		list = append(list, s.Intent)
	}
	return strings.Join(list, " ")
}

// TestMail_Intents checks which parts of a mail ask for something.
func TestMail_Intents(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"signature", "Where is my container?\n\nKind regards,\nJoana Prado\nCustoms Clearance Coordinator", "track_container"},
		{"signature without closing", "Where is my container MSKU1234567?\n\nIngrid Solberg\nSenior Logistics Coordinator | Nordfrukt AS", "track_container"},
		{"reply", "where is my container?\n\nOn Mon, Mar 3, 2025 at 10:12 AM Ana <ana@example.com> wrote:\n> please cancel my booking", "track_container"},
		{"thanks for an answer", "Thank you!\n\nOn Mon, Mar 3, 2025 at 10:12 AM Ana <ana@example.com> wrote:\n> please cancel my booking", "unknown"},
		{"thanks with a subject", "Subject: Re: cancel my booking\n\nThank you!", "unknown"},
		{"subject", "Assunto: fatura\n\nOnde está meu contêiner?", "track_container"},
		{"subject only", "Subject: Where is my container?\n\nKind regards,\nJoana Prado\nCustoms Clearance Coordinator", "track_container"},
		{"subject and no request", "Subject: Where is my container?\n\nHello team,\n\nRegards\nJoana Prado", "track_container"},
		{"postscript", "Where is my container?\n\nKind regards,\nJoana Prado\nInvoice Manager\n\nPS: also cancel my booking", "track_container cancel_booking"},
		{"one line", "Where is my container? Kind regards, John Miller, Invoice Manager", "track_container"},
		{"material", "summarize this:\n> where is my container?\n> it is late", "track_container"},
		{"forward", "FYI\n\n---------- Forwarded message ---------\nFrom: Ana <ana@example.com>\nSubject: late\n\nWhere is my container?\n\nAna Lima\nCustoms Manager", "track_container"},
		{"only a quote", "> please cancel my booking", "cancel_booking"},
		{"thanks above a quote", "Done, thanks!\n\n> please cancel my booking", "unknown"},
		{"thanks below a quote", "> please cancel my booking\n\nThanks,\nAna", "unknown"},
		{"statement below a quote", "> please cancel my booking\n\nWe have taken care of that.", "unknown"},
		{"question below a quote", "> please cancel my booking\n\nWhen will this happen?", "unknown"},
		{"attribution in another language", "Am 03.11.2026 um 10:12 schrieb Ana <ana@example.com>:\n> please cancel my booking\n\nDanke!", "unknown"},
		{"attribution above the quote", "Merci !\n\nLe mar. 3 nov. 2026 à 10:12, Ana <[EMAIL_1]> a écrit :\n\n> please cancel my booking", "unknown"},
		{"announced quote of an address", "Summarize the mail of ana@example.com:\n> where is my container?", "track_container"},
		{"request below a quote", "> please cancel my booking\n\nWhere is my container?", "track_container"},
		{"answers between quotes", "> Which container?\nMSKU1234567\n> Shall we cancel the booking?\nNo!", "unknown"},
		{"pointer below a quote", "> where is my container?\n\nPlease see above.", "track_container"},
		{"traditional chinese", "主題：發票\n\n我的集裝箱在哪裡？\n\n謝謝！\n王小明\n清關主管", "track_container"},
		{"chinese", "主题：发票\n\n我的集装箱在哪里？\n\n谢谢！\n王小明\n清关主管", "track_container"},
		{"spanish", "¿Dónde está mi contenedor?\n\nUn saludo,\nMaría García\nDirectora de Aduana", "track_container"},

		{"two requests", "Where is my container? Thanks, and also cancel my booking", "track_container cancel_booking"},
		{"list", "1. Where is my container?\n2. Cancel my booking\n3. Send me the invoice of May", "track_container cancel_booking invoice_question"},
		{"request after the signature", "Where is my container?\nThanks,\nJoana\nPlease cancel my booking", "track_container cancel_booking"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clf := newClassifier(t).Classify(t.Context(), input(freightRegistry(), tt.text))
			if got := intentsOf(&clf); got != tt.want {
				t.Errorf("%q: got intents %s, want %s\n%s", tt.text, got, tt.want, render(&clf))
			}
		})
	}
}

// TestMail_SubjectNamesDomain checks that the subject of a mail completes the domains of its request.
func TestMail_SubjectNamesDomain(t *testing.T) {
	clf := newClassifier(t).Classify(t.Context(), input(exampleRegistry(), "Subject: databricks\n\nWhy did our cloud bill go up?"))
	got := fmt.Sprint(clf.Intent, clf.Domains)
	if diff := cmp.Diff("cost_analysis[databricks]", got); diff != "" {
		t.Errorf("classification (-want +got):\n%s", diff)
	}
}

// TestMail_Evidence checks that the signature of a mail is no evidence.
func TestMail_Evidence(t *testing.T) {
	in := input(freightRegistry(), "Where is my container?\n\nKind regards,\nJoana Prado\nCustoms Clearance Coordinator")
	clf := newClassifier(t).Classify(t.Context(), in)
	for _, e := range classifier.ListEvidence(&in, &clf) {
		if e.Intent == "clear_customs" && strings.Contains(e.Text, "clearance") {
			t.Errorf("got evidence %+v of the signature", e)
		}
	}
}

package lexical

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

func negationModel() *Model {
	return Train(Corpus{Intents: []IntentDoc{
		{Name: "cancel_appointment", Agents: []string{"appointments"}, Examples: []string{"cancel my appointment", "anular mi cita de mañana", "取消我的预约"}},
		{Name: "reschedule_appointment", Agents: []string{"appointments"}, Examples: []string{"move my appointment to another day", "cambiar la cita"}},
		{Name: "pay_invoice", Agents: []string{"billing"}, Examples: []string{"how can I pay my invoice", "quiero pagar la factura"}},
	}})
}

func TestClassify_Negation(t *testing.T) {
	m := negationModel()
	for text, want := range map[string]string{
		"cancel my appointment":                        "cancel_appointment",
		"why don't you cancel my appointment":          "cancel_appointment",
		"I can't cancel my appointment":                "cancel_appointment",
		"the website does not cancel my appointment":   "cancel_appointment",
		"I don't like it, cancel my appointment":       "cancel_appointment",
		"no puedo pagar la factura":                    "pay_invoice",
		"the website does not pay my invoice":          "pay_invoice",
		"don't cancel my appointment":                  contract.Unknown,
		"Please do not cancel my appointment":          contract.Unknown,
		"I'm late but don't cancel my appointment":     contract.Unknown,
		"I don't want you to cancel my appointment":    contract.Unknown,
		"we do not need to cancel the appointment":     contract.Unknown,
		"no need to cancel my appointment":             contract.Unknown,
		"no quiero cancelar mi cita":                   contract.Unknown,
		"no canceles mi cita":                          contract.Unknown,
		"não quero pagar a fatura":                     contract.Unknown,
		"do not pay the invoice":                       contract.Unknown,
		"por favor no me canceles la cita":             contract.Unknown,
		"you never paid my invoice":                    "pay_invoice",
		"my invoice was never paid":                    "pay_invoice",
		"never cancel my appointment":                  contract.Unknown,
		"nunca canceles mi cita":                       contract.Unknown,
		"no cancelen mi cita":                          contract.Unknown,
		"não cancele minha consulta, por favor":        contract.Unknown,
		"they took my money and do not pay my invoice": "pay_invoice",
		"no quiero que canceles mi cita":               contract.Unknown,
		"DON’T cancel my appointment":                  contract.Unknown,
		"it is not necessary to cancel my appointment": contract.Unknown,
		"no hace falta que cancelen mi cita":           contract.Unknown,
		"no es necesario pagar la factura":             contract.Unknown,
		"não precisam de pagar a fatura":               contract.Unknown,
		"não é preciso pagar a fatura":                 contract.Unknown,
		"no queremos cancelar la cita":                 contract.Unknown,
		"não queremos pagar a fatura":                  contract.Unknown,
		"não precisamos de pagar a fatura":             contract.Unknown,
		"ya no necesitamos pagar la factura":           contract.Unknown,
		"we no longer want to cancel the appointment":  contract.Unknown,
		"don't bother to cancel my appointment":        contract.Unknown,
		"don't bother cancelling my appointment":       contract.Unknown,
		"no se molesten en anular mi cita":             contract.Unknown,
		"no tienes que pagar la factura":               contract.Unknown,
		"não tem de pagar a fatura":                    contract.Unknown,
		"if possible, cancel my appointment":           "cancel_appointment",
		"请别取消我的预约":                                     contract.Unknown,
		"预约已经付款，千万别取消":                                 contract.Unknown,
		"请取消我的预约":                                      "cancel_appointment",
		"别忘了取消我的预约":                                    "cancel_appointment",
		"预约不要了，取消":                                     "cancel_appointment",
		"no tengo que ver al médico, anula mi cita":    "cancel_appointment",
		"no podemos pagar la factura":                  "pay_invoice",
		"we can no longer pay the invoice":             "pay_invoice",
	} {
		p := m.Classify(text)
		if p.Intent != want || p.Negated != (want == contract.Unknown) {
			t.Errorf("%s: got %s %.2f, negated %v, want %s", text, p.Intent, p.Confidence, p.Negated, want)
		}
		if p.Negated && p.Confidence >= 0.3 {
			t.Errorf("%s: got confidence %.2f, which offers the reading", text, p.Confidence)
		}
	}
}

func TestListEvidence_Negation(t *testing.T) {
	items := negationModel().ListEvidence("don't cancel my appointment", 5, func(intent string) bool { return intent == "cancel_appointment" })
	if len(items) == 0 || items[0].Kind != EvidenceNegation || items[0].Text != "cancel" || items[0].Intent != "cancel_appointment" {
		t.Errorf("got %+v, want the negation first", items)
	}
}

// An example that negates the word means the intent.
func TestClassify_NegationInExample(t *testing.T) {
	m := Train(Corpus{Intents: []IntentDoc{
		{Name: "refund_payment", Agents: []string{"a"}, Examples: []string{"do not refund me with a voucher", "I want my money back"}},
		{Name: "track_order", Agents: []string{"b"}, Examples: []string{"where is my order", "has my parcel left"}},
	}})
	if p := m.Classify("do not refund me with a voucher please"); p.Intent != "refund_payment" || p.Negated {
		t.Errorf("got %s %.2f, negated %v, want refund_payment", p.Intent, p.Confidence, p.Negated)
	}
}

// What a text asks not to do need not be in the name of the intent: it may be the verb of
// an example, or the thing that the intent is about.
func TestClassify_NegatedWish(t *testing.T) {
	m := Train(Corpus{Intents: []IntentDoc{
		{Name: "dog_license", Agents: []string{"taxes"}, Examples: []string{"register my dog", "quiero registrar a mi perro"}},
		{Name: "bus_pass", Agents: []string{"transit"}, Examples: []string{"monthly ticket for the bus", "necesito un abono de autobús"}},
		{Name: "loan_renewal", Agents: []string{"library"}, Examples: []string{"extend my books", "I want to renew my library books"}},
		{Name: "cancel_subscription", Agents: []string{"billing"}, Examples: []string{"end my subscription"}},
	}})
	for text, want := range map[string]string{
		"register my dog":                         "dog_license",
		"I don't want to register my dog":         contract.Unknown,
		"please don't register my dog":            contract.Unknown,
		"no quiero registrar a mi perro":          contract.Unknown,
		"you did not register my dog":             "dog_license",
		"I need a bus pass":                       "bus_pass",
		"I don't want a bus pass":                 contract.Unknown,
		"I do not need the pass for the bus":      contract.Unknown,
		"I don't need my bus pass anymore":        "bus_pass",
		"I don't have a bus pass":                 "bus_pass",
		"I don't want my subscription":            "cancel_subscription",
		"I don't want to renew my library books":  contract.Unknown,
		"I don't want to wait, renew my bus pass": "bus_pass",
		"why can't I renew my library books":      "loan_renewal",
	} {
		if p := m.Classify(text); p.Intent != want {
			t.Errorf("%s: got %s %.2f, negated %v, want %s", text, p.Intent, p.Confidence, p.Negated, want)
		}
	}
}

// The negations of a text are read once, and not for each intent: the work must not grow with
// the product of both.
func TestListEvidence_ReadsNegationsOnce(t *testing.T) {
	var c Corpus
	for i := range 300 {
		c.Intents = append(c.Intents, IntentDoc{Name: fmt.Sprintf("act%d", i), Agents: []string{"a"}, Examples: []string{fmt.Sprintf("handle the matter%d", i)}})
	}
	m := Train(c)
	allocations := func(text string) float64 {
		return testing.AllocsPerRun(3, func() { m.ListEvidence(text, 5, func(string) bool { return true }) })
	}
	const negation = "please don't frobnicate the thing. "
	short, long := allocations(negation), allocations(strings.Repeat(negation, 100))
	if limit := 100.0 * 50; long-short > limit { // a few for each word, and none for each intent
		t.Errorf("got %.0f allocations for one negation and %.0f for 100, want at most %.0f more", short, long, limit)
	}
}

// The verb of an example is behind the wish of several people, too.
func TestClassify_NegationOfPluralWish(t *testing.T) {
	m := Train(Corpus{Intents: []IntentDoc{
		{Name: "trip_support", Agents: []string{"a"}, Examples: []string{"queremos anular el viaje", "precisamos anular a viagem"}},
		{Name: "menu", Agents: []string{"b"}, Examples: []string{"qué hay para cenar"}},
	}})
	for _, text := range []string{"no queremos anular el viaje", "não queremos anular a viagem"} {
		if p := m.Classify(text); p.Intent != contract.Unknown || !p.Negated {
			t.Errorf("%s: got %s %.2f, negated %v, want a negation", text, p.Intent, p.Confidence, p.Negated)
		}
	}
}

package negation_test

import (
	"slices"
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
		"never cancel it":                       {"cancel"},
		"it works , so please never cancel it":  {"cancel"},
		"never process it":                      {"process"},
		"never sent the invoice":                nil,
		"never arrives on time":                 nil,
		"they never cancel it":                  nil,
		"my order never arrived":                nil,
		"never got a refund":                    nil,
		"nunca canceles mi pedido":              {"canceles"},
		"nunca me canceles la cita":             {"canceles"},
		"jamas canceles mi pedido":              {"canceles"},
		"nunca me devolvieron el dinero":        nil,
		"nunca me devuelves el dinero":          nil,
		"nunca cancele mi pedido":               nil, // or cancelé: I have never cancelled it
		"no cancelen mi pedido":                 {"cancelen"},
		"por favor no me paguen la factura":     {"paguen"},
		"nunca envien el paquete":               {"envien"},
		"no devuelven el dinero":                nil,
		"no me venden la entrada":               nil,
		"los pedidos no cancelen":               nil,
		"nao cancele o pedido":                  {"cancele"},
		"jamais cancele o pedido":               {"cancele"},
		"nao cancelem o pedido":                 {"cancelem"},
		"nao me cobrem a fatura":                {"cobrem"},
		"nao recebe o pedido":                   nil,
		"jamais recebem o pedido":               nil,
		"no imprime el documento":               nil,
		"no pague la factura":                   nil,
		"no quiero cancelar":                    {"cancelar"},
		"no quiero que canceles":                {"canceles"},
		"no me canceles":                        {"canceles"},
		"nao preciso pagar":                     {"pagar"},
		"it is not necessary to cancel it":      {"cancel"},
		"no hace falta cancelar la cita":        {"cancelar"},
		"no hace falta que cancelen la cita":    {"cancelen"},
		"no es necesario pagar":                 {"pagar"},
		"no es necesario que paguen":            {"paguen"},
		"nao precisa de cancelar":               {"cancelar"},
		"nao precisam de cancelar":              {"cancelar"},
		"nao precisam cancelar":                 {"cancelar"},
		"nao e preciso cancelar":                {"cancelar"},
		"nao e necessario que cancelem":         {"cancelem"},
		"please don t bother to cancel it":      {"cancel"},
		"they don t bother to cancel it":        nil,
		"don t bother cleaning the room":        {"cleaning"},
		"do not bother cleaning the room":       {"cleaning"},
		"dont bother cleaning":                  {"cleaning"},
		"never bother to clean the room":        {"clean"},
		"please never bother cleaning it":       {"cleaning"},
		"you never bother to clean the room":    nil,
		"they don t bother cleaning the room":   nil,
		"don t bother me":                       {"bother"},
		"don t bother the king":                 {"bother"},
		"no need to bother cleaning the room":   {"cleaning"},
		"no te molestes en limpiar":             {"limpiar"},
		"no se moleste en limpiar":              {"limpiar"},
		"no se molesten en limpiar":             {"limpiar"},
		"no os molesteis en limpiar":            {"limpiar"},
		"nunca se molestan en limpiar":          nil,
		"el hotel no se molesta en limpiar":     nil,
		"ellos no se molesten en limpiar":       nil,
		"no tienes que limpiar":                 {"limpiar"},
		"no tienes que hacer la cama":           {"hacer"},
		"ya no tienen que limpiar":              {"limpiar"},
		"no tiene que venir":                    {"venir"},
		"no tiene que ver":                      nil,
		"no tengo que pagar":                    nil,
		"no tienen habitaciones":                nil,
		"nao se incomode em limpar":             {"limpar"},
		"nao se incomodem em limpar":            {"limpar"},
		"nao te incomodes em limpar":            {"limpar"},
		"o hotel nao se incomoda em limpar":     nil,
		"o hotel nao se incomode em limpar":     nil,
		"nao tem de limpar":                     {"limpar"},
		"nao tens que limpar":                   {"limpar"},
		"nao tem que limpar":                    {"limpar"},
		"nao tem que ver":                       nil,
		"tiene que limpiar":                     nil,
		"nao tenho de pagar":                    nil,
		"nao tem quartos":                       nil,
		"we no longer want to cancel it":        {"cancel"},
		"hace falta cancelar la cita":           nil,
		"no hace nada":                          nil,
		"they do not cancel it":                 nil,
		"so why don t you cancel it":            nil,
		"la pagina no cancela":                  nil,
		"no funciona":                           nil,
		"别 取消 预订":                               {"取消"},
		"订单 已 付款 别 取消":                          {"取消"},
		"先别 退款":                                 {"退款"},
		"千万 万别 删除":                              {"删除"},
		"别再 打扫 房间":                              {"打扫"},
		"勿 打扫 房间":                               {"打扫"},
		"无需 打扫 房间":                              {"打扫"},
		"别 忘了 取消 预订":                            nil,
		"别 房间 怎么 预订":                            nil, // 别的房间
		"别人 取消 预订":                              nil,
		"怎么 性别 修改":                              nil,
		"不能 取消 预订":                              nil,
		"为什么 不 取消 预订":                           nil,
		"订单 不要 取消":                              nil, // 订单不要了，取消: the words do not contain 了
		"do not":                                nil,
		"":                                      nil,
	} {
		if diff := cmp.Diff(want, negation.FindVerbs(words(text))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// A caller looks for negations only in a text that has a negator.
func TestIsNegator(t *testing.T) {
	isNegator := func(w negation.Word) bool { return negation.IsNegator([]byte(w.Text)) }
	for _, text := range []string{"don t cancel", "do not cancel", "dont cancel", "didn t want to cancel", "no need to cancel", "no quiero cancelar", "nao quero cancelar", "nao canceles", "never cancel", "nunca canceles", "jamas canceles", "jamais cancele", "别 取消", "先别 取消", "万别 取消", "别再 取消", "勿 取消", "无需 取消", "无须 取消"} {
		if list := words(text); len(negation.FindVerbs(list)) == 0 || !slices.ContainsFunc(list, isNegator) {
			t.Errorf("%q: got no negation with a negator", text)
		}
	}
	if slices.ContainsFunc(words("do you know it"), isNegator) {
		t.Error("got a negator in a question")
	}
}

func TestFindRefused(t *testing.T) {
	for text, want := range map[string]string{
		"i don t want a bus pass":                    "a bus pass",
		"i don t want a bus pass , i want the train": "a bus pass",
		"we do not need the pass":                    "the pass",
		"no quiero el abono":                         "el abono",
		"nao preciso do passe":                       "do passe",
		"i don t want to pay":                        "", // a verb
		"i don t have a bus pass":                    "",
		"i don t need my pass anymore":               "",
		"i don t need it any more":                   "",
		"ya no quiero mi abono":                      "",
		"it does not want a pass":                    "",
		"i want a pass":                              "",
		"i don t want":                               "",
	} {
		var got []string
		for _, w := range negation.FindRefused(words(text)) {
			got = append(got, w.Text)
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

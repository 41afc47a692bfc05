package followup_test

import (
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/lexical/followup"
)

func TestContinues(t *testing.T) {
	tests := []struct {
		previous, text string
		want           bool
	}{
		{"Where is my container MSKU1234567?", "and TCLU7781239?", true},
		{"Where is my container MSKU1234567?", "What about container TCLU7781239, please?", true},
		{"Where is my container MSKU1234567?", "Thanks! And the containers TCLU7781239 and TCLU7781240?", true},
		{"Where is my container MSKU1234567?", "TCLU7781239", true},
		{"Where is my container MSKU1234567?", "TCLU7781239 too", true},
		{"clean room 411", "and room 412?", true},
		{"clean room 411", "room 412", true},
		{"cancel order ORD-77120", "same for ORD-88213", true},
		{"cancel order-77120", "and order-88213", true},
		{"call [PHONE_1]", "and [PHONE_2]?", true},
		{"what is for lunch on monday", "and on tuesday?", true},
		{"what is for lunch on monday", "and on the 15th?", true},
		{"what is for lunch on 15/12", "and tomorrow?", true},
		{"a table for 10:30", "and 11:30?", true},
		{"Onde está o pedido 77120?", "e o 88213?", true},
		{"Onde está o pedido 77120?", "e quanto ao pedido nº 88213?", true},
		{"Qual é o menu de hoje?", "e o de amanhã?", true},
		{"Limpe o quarto 411", "o 412 também", true},
		{"¿Dónde está el pedido 77120?", "¿y el 88213?", true},
		{"¿Cuál es el menú de hoy?", "¿y el de mañana?", true},
		{"limpia la habitación 411", "¿Y la habitación 412, por favor?", true},
		{"订单77120在哪里？", "那88213呢？", true},
		{"订单77120在哪里？", "订单88213呢", true},
		{"今天的菜单是什么？", "那明天的呢？", true},
		{"打扫411房间", "还有412房间", true},
		{"打掃411房間", "還有412房間", true},
		{"訂單77120在哪裡？", "那訂單88213呢？", true},

		{"Where is my container MSKU1234567?", "and the weather?", false},
		{"Where is my container MSKU1234567?", "and cancel it?", false},
		{"Where is my container MSKU1234567?", "and cancel TCLU7781239", false},
		{"Where is my container MSKU1234567?", "and room 412?", false},
		{"Where is my container MSKU1234567?", "thanks", false},
		{"Where is my container MSKU1234567?", "ok", false},
		{"Where is my container MSKU1234567?", "no", false},
		{"Where is my container MSKU1234567?", "and?", false},
		{"Where is my container MSKU1234567?", "and my container?", false}, // nothing new
		{"Where is my container MSKU1234567?", "10/10, thanks!", false},
		{"Where is my container MSKU1234567?", "base64", false},
		{"Where is my container MSKU1234567?", "and tomorrow?", false},
		{"Where is my container?", "and 412?", false},
		{"Where is my container MSKU1234567?", "TCLU7781239 is late", false},
		{"Where is my container MSKU1234567?", "I have 2 dogs", false},
		{"cancel order 77120", "where is 88213?", false},
		{"cancel order 77120", "and why 88213?", false},
		{"cancel order 77120", "and not 88213", false},
		{"cancel order 77120", "but not 88213", false},
		{"cancel order 77120", "no, 88213", false},
		{"cancel order 77120", "and 88213, and refund me", false},
		{"cancel order 77120", "and tomorrow?", false},
		{"cancel order 77120", "and track-88213", false},
		{"cancel order 77120", "5", false},
		{"cancel order 77120", "thanks, order 77120", false}, // nothing new
		{"cancel order 77120", "and 77120?", false},
		{"what is for lunch today", "and today?", false},
		{"今天的菜单是什么？", "那今天的呢？", false},
		{"cancel order 77120", "and by 5?", false},
		{"cancel order 77120", "and at 5pm?", false},
		{"cancel order 77120", "and on 15/12?", false},
		{"what is for lunch today", "and 77120?", false},
		{"call [PHONE_1]", "[EMAIL_1]", false},
		{"call [PHONE_1]", "and phone 412", false},
		{"cancel order 77120", "and {\"order\": 88213}", false},
		{"cancel order 77120", "and https://example.com/88213", false},
		{"", "and 88213?", false},
		{"Onde está o pedido 77120?", "e o tempo?", false},
		{"Onde está o pedido 77120?", "e cancela o 88213", false},
		{"Onde está o pedido 77120?", "e não o 88213", false},
		{"Onde está o pedido 77120?", "obrigado", false},
		{"¿Dónde está el pedido 77120?", "¿y el tiempo?", false},
		{"¿Dónde está el pedido 77120?", "y cancela el 88213", false},
		{"¿Dónde está el pedido 77120?", "pero no el 88213", false},
		{"¿Dónde está el pedido 77120?", "sin el 88213", false},
		{"订单77120在哪里？", "那天气呢？", false},
		{"订单77120在哪里？", "取消88213", false},
		{"取消订单77120", "不要88213", false},
		{"订单77120在哪里？", "谢谢", false},
		{"订单77120在哪里？", "那明天呢？", false},
	}
	for _, tt := range tests {
		if got := followup.Continues(tt.text, tt.previous, nil); got != tt.want {
			t.Errorf("%q after %q: got %t, want %t", tt.text, tt.previous, got, tt.want)
		}
	}
}

func TestContinues_Names(t *testing.T) {
	const previous = "review the costs of aws"
	for text, want := range map[string]bool{"and azure?": true, "azure": false, "and the weather?": false, "and the azure weather?": false} {
		if got := followup.Continues(text, previous, []string{"azure"}); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
}

func TestContinues_LongTexts(t *testing.T) {
	var long strings.Builder
	for range 70 {
		long.WriteString("container ")
	}
	if followup.Continues("and container 412?", long.String()+"411", nil) {
		t.Error("got a follow-up by a word of a document, want none")
	}
	if followup.Continues("and 412 "+long.String(), "411", nil) {
		t.Error("got a long follow-up, want none")
	}
}

func FuzzContinues(f *testing.F) {
	f.Add("and [PHONE_1]?", "call [PHONE_2]")
	f.Add("那88213呢？", "订单77120")
	f.Add("\xff-#[A_", "]")
	f.Fuzz(func(t *testing.T, text, previous string) {
		if followup.Continues(text, previous, nil) && followup.Continues("not "+text, previous, nil) {
			t.Errorf("%q is a follow-up with and without a negation", text)
		}
	})
}

package lexical

import (
	"fmt"
	"strings"
)

// trainedCorpus has enough examples for a statistical model: office tasks in
// many phrasings, one of them in Chinese.
func trainedCorpus() Corpus {
	fields := []struct {
		intent, agent, domain string
		verbs, objects        []string
	}{
		{"pay_invoice", "finance", "finance", []string{"pay", "settle", "clear"}, []string{"invoice", "bill from the supplier", "open balance", "rent"}},
		{"refund_order", "finance", "finance", []string{"refund", "give back the money for", "reimburse"}, []string{"order", "purchase", "broken lamp", "second parcel"}},
		{"book_room", "office", "office", []string{"book", "reserve", "find me"}, []string{"meeting room", "place for ten people", "quiet corner", "room upstairs"}},
		{"order_lunch", "office", "office", []string{"order", "get me", "bring"}, []string{"lunch", "sandwich", "salad with cheese", "pizza"}},
		{"reset_password", "support", "support", []string{"reset", "change", "unlock"}, []string{"password", "account", "login to the mail", "pin"}},
		{"fix_printer", "support", "support", []string{"fix", "repair", "look at"}, []string{"printer", "scanner", "paper jam", "toner"}},
	}
	c := Corpus{Domains: []string{"finance", "office", "support"}}
	for _, f := range fields {
		d := IntentDoc{Name: f.intent, Agents: []string{f.agent}, Domains: []string{f.domain}}
		for i, verb := range f.verbs {
			for j, object := range f.objects {
				how := []string{"please %s the %s", "can you %s my %s", "%s the %s today", "i want you to %s that %s"}
				d.Examples = append(d.Examples, fmt.Sprintf(how[(i+j)%4], verb, object), fmt.Sprintf(how[(i+j+1)%4], verb, object))
			}
		}
		c.Intents = append(c.Intents, d)
	}
	weather := IntentDoc{Name: "weather", Agents: []string{"support"}, Domains: []string{"support"}}
	for when := range strings.FieldsSeq("今天 明天 后天 周末 下周 早上 晚上 中午") {
		weather.Examples = append(weather.Examples, when+"天气怎么样", when+"会下雨吗")
	}
	c.Intents = append(c.Intents, weather)
	return c
}

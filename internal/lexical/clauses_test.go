package lexical_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/lexical"
)

func TestSplitClauses(t *testing.T) {
	tests := []struct {
		name string
		text string
		want []string
	}{
		{"one request", "Review this python code", []string{"Review this python code"}},
		{"nothing", " \n\t ", nil},
		{"only joints", "and then; and.", nil},
		{"sentences", "Review the code. Check the cost! Is it high? Yes", []string{"Review the code", "Check the cost!", "Is it high?", "Yes"}},
		{"full stop at the end", "Review the code.", []string{"Review the code"}},
		{"dots", "Wait... review it", []string{"Wait..", "review it"}},
		{"closing quotes", `Say "done." Then go (now!) ok`, []string{`Say "done`, "go (now!)", "ok"}},
		{"numbers", "Use 3.14 and 1,000.5 here", []string{"Use 3.14", "1,000.5 here"}},
		{"file names", "Review app.py and go.mod", []string{"Review app.py", "go.mod"}},
		{"addresses", "Read https://x.example/a;b?c=1&d,e. Then review", []string{"Read https://x.example/a;b?c=1&d,e", "review"}},
		{"abbreviations", "Use tools, e.g. pylint, i.e. linters. Ask Dr. Ana vs. J. Silva", []string{"Use tools, e.g. pylint, i.e. linters", "Ask Dr. Ana vs. J. Silva"}},
		{"abbreviations in Portuguese", "Analise o custo, p.ex. do Azure. Fim", []string{"Analise o custo, p.ex. do Azure", "Fim"}},
		{"semicolons", "a; b;c ；d", []string{"a", "b", "c", "d"}},
		{"and", "Review it and check the cost", []string{"Review it", "check the cost"}},
		{"and then", "Review it, and then, check the cost", []string{"Review it", "check the cost"}},
		{"Then:", "Review it\nThen: check", []string{"Review it", "check"}},
		{"capitals", "Review it AND check", []string{"Review it", "check"}},
		{"not inside words", "Understand sandy candy; brand y-axis e-mail 'e' a/e", []string{"Understand sandy candy", "brand y-axis e-mail 'e' a/e"}},
		{"Portuguese", "Revise este notebook e depois analise o custo", []string{"Revise este notebook", "analise o custo"}},
		{"Spanish", "Revisa el código y luego analiza el coste", []string{"Revisa el código", "analiza el coste"}},
		{"Spanish, with an accent", "Revisa, después analiza", []string{"Revisa", "analiza"}},
		{"Chinese", "审查代码，然后分析成本。并且部署！好吗？好", []string{"审查代码", "分析成本", "部署！", "好吗？", "好"}},
		{"traditional Chinese", "審查程式，然後分析成本。並且部署！合併嗎？好", []string{"審查程式", "分析成本", "部署！", "合併嗎？", "好"}},
		{"Chinese joint alone", "审查代码并分析成本", []string{"审查代码", "分析成本"}},
		{"Chinese joint inside words", "合并并发代码，并行", []string{"合并并发代码，并行"}},
		{"Arabic marks", "راجع الكود؟ حلل التكلفة؛ شكرا", []string{"راجع الكود؟", "حلل التكلفة", "شكرا"}},
		{"Hindi full stop", "कोड देखो। लागत देखो", []string{"कोड देखो", "लागत देखो"}},
		{"one newline", "Review\nthis code", []string{"Review\nthis code"}},
		{"paragraph", "Review this\n \nCheck that\r\n\r\nEnd", []string{"Review this", "Check that", "End"}},
		{"a list", "Please:\n- review it\n * check it\n• run it\n1. ship it\n2) log it\na) rest", []string{"Please:", "review it", "check it", "run it", "ship it", "log it", "rest"}},
		{"list at the start", "1. review it\n2. check it", []string{"review it", "check it"}},
		{"dash without a list", "Review\n-x and\n3.5 of it", []string{"Review\n-x", "3.5 of it"}},
		{"quoted code", "Run `a; b. C and d` and check", []string{"Run `a; b. C and d`", "check"}},
		{"unpaired backtick", "Run ` a; b", []string{"Run ` a", "b"}},
		{"block", "Review:\n```py\na; b. And c\n- d\n```\ncheck the cost", []string{"Review:\n```py\na; b. And c\n- d\n```", "check the cost"}},
		{"open block", "Review:\n```\na; b\n\nc", []string{"Review:\n```\na; b\n\nc"}},
		{"object", "Send {\"a\": \"b. c; d\",\n\n- 1: \"and\"} and check", []string{"Send {\"a\": \"b. c; d\",\n\n- 1: \"and\"}", "check"}},
		{"comment", "Review it <!-- a. B; c and d\n\n- e --> and check", []string{"Review it <!-- a. B; c and d\n\n- e -->", "check"}},
		{"open comment", "Review it <!-- a; b", []string{"Review it <!-- a", "b"}},
		{"braces", "Review {a; b}", []string{"Review {a", "b}"}},
		{"emoji", "🎉 and 🎉", []string{"🎉", "🎉"}},
		{"not UTF-8", "\xff and \xfe; \x80", []string{"\xff", "\xfe", "\x80"}},
	}
	m := lexical.Train(lexical.Corpus{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, m.SplitClauses(tt.text)); diff != "" {
				t.Errorf("segments of %q (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

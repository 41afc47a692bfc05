package token

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"
)

func TestScanner(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"ascii", "Review THIS, please!", "review this please"},
		{"labels", "code_review kb-internal a.b/c", "code review kb internal a b c"},
		{"numbers", "Python3 s3 3.14", "python3 s3 3 14"},
		{"apostrophes", "what's Ana’s", "what s ana s"},
		{"accents", "Revisão é AÇÃO", "revisao e acao"},
		{"decomposed accents", "a\u0301o", "ao"},
		{"accent only", "\u0301 x", "x"},
		{"sharp s", "Straße", "strasse"},
		{"dotted capital i", "İstanbul", "istanbul"},
		{"ligature and width", "ﬁle ＡＢＣ", "file abc"},
		{"Greek and Cyrillic", "ΚΌΣΤΟΣ Ревью", "κοστοσ ревью"},
		{"Hebrew points and Arabic vowels", "שָׁלוֹם مَرْحَبًا", "שלום مرحبا"},
		{"tatweel and bidi marks", "مرحـــبا \u202Ecode\u202C", "مرحبا code"},
		{"Devanagari keeps its vowels", "कोड", "कोड"},
		{"zero width inside", "co\u200dde", "code"},
		{"ideographs in pairs", "风湿免疫", "风湿 湿免 免疫"},
		{"Chinese words", "审查代码", "审查 代码"},
		{"no pair with the next word", "新代码", "新 代码"},
		{"behind a word also alone", "验证码收不到", "验证 码 码收 不到"},
		{"stop words of several characters", "发票什么时候可以开", "发票 什么时候 可以 开"},
		{"one ideograph", "码", "码"},
		{"particles part and vanish", "请审查的代码吗", "审查 代码"},
		{"between particles", "我查的", "查"},
		{"mixed scripts", "看Python代码v2", "看 python 代码 v2"},
		{"Japanese", "コードレビュー", "コー ード ドレ レビ ビュ ュー"},
		{"half-width kana", "ｺｰﾄﾞ", "コー ード"},
		{"Korean has spaces", "코드 검토", "코드 검토"},
		{"language signs", "C++ and C# or F#, not a+b, #1 or a++b", "c++ and c# or f# not a b 1 or a b"},
		{"emoji", "👩‍💻 ok 🇧🇷", "ok"},
		{"invalid bytes", "a\xffb\xc3", "a b"},
		{"fence", "see ```go\nfunc main()\n``` end", "see go end"},
		{"fence closed in a line", "a\n```\ncode```b", "a b"},
		{"longer fence", "a\n````\n```\nx\n````\nb", "a b"},
		{"open fence", "a\n  ```py\nx y", "a py"},
		{"unpaired fence", "use ``` for code\nthen review", "use for code then review"},
		{"quoted on one line", "```review``` it", "review it"},
		{"placeholders", "mail [EMAIL_1], [SECRET_12] or[IP_3]now", "mail or now"},
		{"placeholder between ideographs", "审查[CARD_1]代码", "审查 代码"},
		{"beside a fence", "```[EMAIL_1]\n[EMAIL_2]\n```[EMAIL_3] x", "x"},
		{"no placeholders", "[email_1] [EMAIL] [EMAIL_] [_1] [EMAIL_1 [EMAIL_x] [ÉMAIL_1] [] [", "email 1 email email 1 email 1 email x email 1"},
		{"object", `see {"a": "b c", "d": [1]} end`, "see end"},
		{"truncated object", "see {\"a\": \"b c\nend", "see end"},
		{"braces are no object", `see {a} {"b"} end`, "see a b end"},
		{"a comment", "see <!-- a b --> end", "see end"},
		{"open comment", "see <!-- a b", "see a b"},
		{"fence in an object", "see {\"a\":\"```\"} b\n```\nc\n``` d", "see b d"},
		{"no object in an info line", "```{\"a\":\nb\n``` \"c\"} d", "a c d"},
		{"two fences", "```\nx\n```b```\ny\n```c", "b c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(norm.NFC.String(tt.want), norm.NFC.String(strings.Join(readAll(tt.text), " "))); diff != "" {
				t.Errorf("words of %q (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

func readAll(text string) []string {
	var all []string
	w := NewScanner()
	for w.Reset(text); w.Next(); {
		all = append(all, string(w.Word))
	}
	return all
}

// TestScanner_Reused checks that a text does not affect the next one.
func TestScanner_Reused(t *testing.T) {
	w := NewScanner()
	w.Reset("前半句 and```\nopen")
	w.Next()
	w.Reset("code")
	if !w.Next() || string(w.Word) != "code" || w.Next() {
		t.Errorf("got word %q, want only \"code\"", w.Word)
	}
}

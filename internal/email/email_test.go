package email_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/caprouter/caprouter/internal/email"
)

// mail is a text with the parts that Parse is to return.
type mail struct {
	name, text string
	want       email.Message
}

// loadMails reads the mails in testdata.
func loadMails(tb testing.TB) (list []mail) {
	tb.Helper()
	paths, err := filepath.Glob("testdata/mails/*.txtar")
	if err != nil {
		tb.Fatal(err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		for _, f := range archive.Files {
			name, part, _ := strings.Cut(f.Name, "/")
			data := strings.TrimSuffix(string(f.Data), "\n")
			if part == "text" {
				name = strings.TrimSuffix(filepath.Base(path), ".txtar") + ": " + name
				list = append(list, mail{name: name, text: data, want: email.Message{Body: data}})
				continue
			}
			want := &list[len(list)-1].want
			switch part {
			case "subject":
				want.Subject = data
			case "body":
				want.Body = data
			case "reference":
				want.Reference = data
			default:
				tb.Fatalf("%s: got part %q of a mail, want text, subject, body or reference", path, f.Name)
			}
		}
	}
	return list
}

func TestParse(t *testing.T) {
	mails := loadMails(t)
	if len(mails) < 40 {
		t.Fatalf("got %d mails, want at least 40", len(mails))
	}
	for _, m := range mails {
		t.Run(m.name, func(t *testing.T) {
			got := email.Parse(m.text)
			m.want.IsReply = got.IsReply // see TestParse_IsReply
			if diff := cmp.Diff(m.want, got); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			windows := strings.ReplaceAll(m.text, "\n", "\r\n")
			if got := email.Body(windows); strings.ReplaceAll(got, "\r", "") != m.want.Body {
				t.Errorf("got body %q with CRLF, want %q", got, m.want.Body)
			}
		})
	}
}

// TestParse_Closings checks signatures after the closings of four languages, and without one.
func TestParse_Closings(t *testing.T) {
	const request = "Where is my container?"
	closings := []string{
		"Regards,", "Best,", "Thanks,", "Thank you!", "Kind regards,", "Best regards", "Cheers", "Sincerely,", "Atenciosamente,", "Att,", "Cumprimentos,",
		"Obrigado,", "Abraços,", "Saludos,", "Un cordial saludo", "-- ", "",
	}
	titles := []string{"Customs Clearance Coordinator", "Azure Billing Manager", "Invoice specialist", "Head of Booking & Cancellations"}
	for _, closing := range closings {
		for _, title := range titles {
			for _, between := range []string{"\n\n", "\n"} {
				text := request + between + strings.TrimPrefix(closing+"\n", "\n") + "Joana Prado\n" + title
				if got := email.Parse(text); got != (email.Message{Body: request}) {
					t.Errorf("%q: got %+v, want the body %q", text, got, request)
				}
			}
		}
	}
}

// TestParse_ItemSignature checks a last line of a name and a job title that begins like an item of a list.
func TestParse_ItemSignature(t *testing.T) {
	const signature = "- Maria Silva, Logistics Manager"
	for text, want := range map[string]bool{
		"Where is my container\n" + signature:                                   true,
		"Where is my container?\n\n" + signature:                                true,
		"Onde está meu contêiner\n– Maria Silva, Gerente de Logística":          true,
		"Check these:\n- the invoice of May\n\n" + signature:                    true,
		"Check these:\n- the invoice of May\n" + signature:                      false,
		"Add these users:\n" + signature:                                        false,
		"Add these users:\n\n- Joana Prado, Customs Manager\n\n" + signature:    false,
		"Add to the project\n" + signature + "\n- Joana Prado, Customs Manager": false,
		"Add to the project\n" + signature + "\nand tell them":                  false,
		signature:                             false,
		"Where is my container\n- Order 4711": false,
	} {
		if removed := email.Body(text) != text; removed != want {
			t.Errorf("%q: got body %q, want the signature removed: %t", text, email.Body(text), want)
		}
	}
}

// TestParse_IsReply checks the signs of a reply.
func TestParse_IsReply(t *testing.T) {
	for text, want := range map[string]bool{
		"Subject: Re: container\n\nThank you.":                       true,
		"Assunto: RES: contêiner\n\nObrigado.":                       true,
		"主题：回复：集装箱\n\n谢谢你。":                                          true,
		"Subject: Fwd: container\n\nSee below.":                      false,
		"Subject: container\n\nThank you.":                           false,
		"Thank you.\n\nOn Mon, Ana <a@example.com> wrote:\n> cancel": true,
		"summarize:\n> cancel":                                       false,
	} {
		if got := email.Parse(text).IsReply; got != want {
			t.Errorf("%q: got a reply %t, want %t", text, got, want)
		}
	}
}

// TestParse_OneLine checks that a text of one line without a closing is unchanged.
func TestParse_OneLine(t *testing.T) {
	for _, text := range []string{
		"", " ", "Where is my container? ", "Subject: where is my container?", "> where is it", "--", "From: a@example.com", "On Monday, Ana <a@example.com> wrote:",
		"thanks for the help, where is my container", "best regards", "PS: cancel it", "谢谢你的帮助，我的集装箱在哪里？", "Sent from my iPhone", "```", "Att",
	} {
		if got := email.Parse(text); got != (email.Message{Body: text}) {
			t.Errorf("%q: got %+v, want it unchanged", text, got)
		}
	}
}

// TestParse_Linear reads long texts of repeated lines. If the time grew with the square of the length, the test would exceed
// the time limit of the package.
func TestParse_Linear(t *testing.T) {
	for _, piece := range []string{
		"On a\n", "On Mon, a@b.com wrote:\n> x\n", "-----Original Message-----\n", "a\n---------- Forwarded message ---------\n", "From: a\n", "Subject: x\n\n",
		"Thanks, ", "Where? Kind regards, ", "This message\n", "this message a\n\n", "Joana Prado\n", "A B\n\n", "> x\n\n", ">", "-- \n", "\n", "```\n", "Re: ", "此致。", "P.S. ",
		"Best ", "a. ", "x:\n> y\n", "____\n", "\u00a0\n",
	} {
		text := "Where is it?\n" + strings.Repeat(piece, 1<<18/len(piece))
		if m := email.Parse(text); m.Body == "" {
			t.Errorf("%q: got an empty body, want text", piece)
		}
	}
}

// FuzzParse checks that a body consists of lines of the text, and is never empty.
func FuzzParse(f *testing.F) {
	for _, m := range loadMails(f) {
		f.Add(m.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := email.Parse(text)
		if m != email.Parse(text) {
			t.Errorf("%q: got two messages", text)
		}
		if m.Body == "" && text != "" {
			t.Errorf("%q: got an empty body", text)
		}
		for line := range strings.SplitSeq(m.Body, "\n") {
			if line = strings.TrimSpace(line); m.Body != m.Subject && !strings.Contains(text, line) {
				t.Errorf("%q: got line %q, which is not in the text", text, line)
			}
		}
		if again := email.Body(m.Body); len(again) > len(m.Body) {
			t.Errorf("%q: got a longer body %q of the body", text, again)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for name, text := range map[string]string{"short": "Where is my container, and when does it arrive?", "4KiB": strings.Repeat("This is a sentence of a long text. ", 120)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				email.Parse(text)
			}
		})
	}
}

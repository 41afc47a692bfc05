package email_test

import (
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/email"
)

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

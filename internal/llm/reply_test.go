package llm_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
)

func TestNewReply(t *testing.T) {
	used := contract.Tokens{Input: 3, Output: 2, Thinking: 1}
	for name, tc := range map[string]struct {
		text   string
		end    llm.FinishReason
		said   string
		want   *llm.Reply
		reason string
		detail string
	}{
		"text":                      {"hello", llm.FinishComplete, "STOP", &llm.Reply{Text: "hello", Tokens: used}, "", ""},
		"white space stays":         {" hello\n", llm.FinishComplete, "STOP", &llm.Reply{Text: " hello\n", Tokens: used}, "", ""},
		"cut off":                   {"hel", llm.FinishTruncated, "MAX_TOKENS", &llm.Reply{Text: "hel", Truncated: true, Tokens: used}, "", ""},
		"cut off before anything":   {"", llm.FinishTruncated, "MAX_TOKENS", &llm.Reply{Truncated: true, Tokens: used}, "", ""},
		"blocked":                   {"", llm.FinishBlocked, "SAFETY", nil, llm.ReasonBlocked, "the maker's filters held back the reply: SAFETY"},
		"blocked, after some words": {"hel", llm.FinishBlocked, "SAFETY", nil, llm.ReasonBlocked, "the maker's filters held back the reply: SAFETY"},
		"nothing":                   {"", llm.FinishComplete, "", nil, llm.ReasonEmpty, "a reply without text"},
		"white space only":          {" \n\t", llm.FinishComplete, "STOP", nil, llm.ReasonEmpty, "a reply without text: STOP"},
		"unknown reason, no text":   {"", llm.FinishComplete, "MALFORMED\x1b[2J", nil, llm.ReasonEmpty, "a reply without text: MALFORMED[2J"},
		"unknown reason, text":      {"hello", llm.FinishComplete, "NEWLY_INVENTED", &llm.Reply{Text: "hello", Tokens: used}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := llm.NewReply(tc.text, tc.end, tc.said, used)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
			if llm.ReasonOf(err) != tc.reason {
				t.Fatalf("got error %v, want %q", err, tc.reason)
			}
			if want := tc.reason + ": " + tc.detail; err != nil && err.Error() != want {
				t.Errorf("got error %q, want %q", err, want)
			}
		})
	}
}

func TestGeminiFinishReason(t *testing.T) {
	for said, want := range map[string]llm.FinishReason{
		"STOP": llm.FinishComplete, "": llm.FinishComplete, "OTHER": llm.FinishComplete, "LANGUAGE": llm.FinishComplete, "WHATEVER": llm.FinishComplete,
		"MAX_TOKENS": llm.FinishTruncated,
		"SAFETY":     llm.FinishBlocked, "RECITATION": llm.FinishBlocked, "BLOCKLIST": llm.FinishBlocked,
		"PROHIBITED_CONTENT": llm.FinishBlocked, "SPII": llm.FinishBlocked,
	} {
		if got := llm.GeminiFinishReason(said); got != want {
			t.Errorf("%s: got %v, want %v", said, got, want)
		}
	}
}

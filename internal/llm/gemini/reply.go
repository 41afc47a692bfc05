package gemini

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/google/generative-ai-go/genai"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// answer is the part of a GenerateContentResponse that the SDK can take.
type answer struct {
	Candidates []struct {
		Content struct {
			Role  string `json:"role,omitempty"`
			Parts []part `json:"parts"`
		} `json:"content"`
		FinishReason enum `json:"finishReason,omitzero"`
	} `json:"candidates"`
	PromptFeedback *struct {
		BlockReason enum `json:"blockReason,omitzero"`
	} `json:"promptFeedback,omitzero"`
	UsageMetadata *usage `json:"usageMetadata,omitzero"`
}

type part struct {
	Text    *string `json:"text"`
	Thought bool    `json:"thought,omitzero"`
}

type usage struct {
	PromptTokenCount     int32 `json:"promptTokenCount"`
	CandidatesTokenCount int32 `json:"candidatesTokenCount"`
	ThoughtsTokenCount   int32 `json:"thoughtsTokenCount,omitzero"`
	TotalTokenCount      int32 `json:"totalTokenCount"`
}

// enum is a name, or the number the SDK asks for.
type enum = json.RawMessage

// onlyAnswers rewrites the JSON of a response before the SDK reads it. The SDK
// has no field that says a part is a thought and would hand it out as answer,
// panics at a part without text, and drops names it does not know, which may be
// why there is no text at all.
func onlyAnswers(body []byte) ([]byte, error) {
	var a answer
	if err := strictjson.UnmarshalAllowUnknown(body, &a); err != nil {
		return nil, err
	}
	for i := range a.Candidates {
		c := &a.Candidates[i]
		parts := []part{}
		for _, p := range c.Content.Parts {
			if p.Text != nil && !p.Thought {
				parts = append(parts, p)
			}
		}
		c.Content.Parts = parts
		c.FinishReason = number(c.FinishReason, finishReasons)
	}
	if f := a.PromptFeedback; f != nil {
		f.BlockReason = number(f.BlockReason, blockReasons)
	}
	if u := a.UsageMetadata; u != nil {
		// Thoughts have no field either: they are what the total has beyond the rest.
		u.TotalTokenCount = max(u.TotalTokenCount, sum(u.PromptTokenCount, u.CandidatesTokenCount, u.ThoughtsTokenCount))
		u.ThoughtsTokenCount = 0
	}
	return strictjson.Marshal(&a)
}

// sum adds counts a server sent, which may be anything: one below zero counts as
// none, and a sum too large for the SDK's type is its largest number.
func sum(counts ...int32) int32 {
	total := int64(0)
	for _, n := range counts {
		total += int64(max(n, 0))
	}
	return int32(min(total, math.MaxInt32))
}

// The numbers of what the SDK knows by number only, and a few it knows.
var (
	finishReasons = []string{
		"FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER",
		"LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL",
	}
	blockReasons = []string{"BLOCK_REASON_UNSPECIFIED", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY"}
)

// unnamed is the number of a reason that is newer than our lists.
const unnamed = 99

// number makes the number of a name.
func number(value enum, names []string) enum {
	var name string
	if strictjson.UnmarshalAllowUnknown(value, &name) != nil || name == "" {
		return value
	}
	for i, n := range names {
		if n == name {
			return enum(strconv.Itoa(i))
		}
	}
	return enum(strconv.Itoa(unnamed))
}

func nameOf(n int32, names []string) string {
	if n >= 0 && int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprintf("reason %d", n)
}

// read makes a reply of what the SDK gives out without an error: everything but
// a blocked prompt, SAFETY and RECITATION, with text or without.
func read(resp *genai.GenerateContentResponse) (*llm.Reply, error) {
	if len(resp.Candidates) == 0 {
		if resp.PromptFeedback != nil {
			return nil, llm.BlockedError("prompt", "")
		}
		return llm.NewReply("", llm.FinishComplete, "no candidates", contract.Tokens{})
	}
	candidate := resp.Candidates[0]
	finish := nameOf(int32(candidate.FinishReason), finishReasons)
	return llm.NewReply(text(candidate.Content), llm.GeminiFinishReason(finish), finish, tokens(resp.UsageMetadata))
}

func text(content *genai.Content) string {
	if content == nil {
		return ""
	}
	var b strings.Builder
	for _, p := range content.Parts {
		if t, ok := p.(genai.Text); ok {
			b.WriteString(string(t))
		}
	}
	return b.String()
}

func tokens(u *genai.UsageMetadata) contract.Tokens {
	if u == nil {
		return contract.Tokens{}
	}
	input, text, total := max(int(u.PromptTokenCount), 0), max(int(u.CandidatesTokenCount), 0), int(u.TotalTokenCount)
	return contract.Tokens{Input: input, Output: max(total-input, 0), Thinking: max(total-input-text, 0)}
}

// blockedError is the SDK's own error for what it does recognise.
func blockedError(e *genai.BlockedError) error {
	if e.PromptFeedback != nil {
		return llm.BlockedError("prompt", nameOf(int32(e.PromptFeedback.BlockReason), blockReasons))
	}
	said := "SAFETY"
	if e.Candidate != nil {
		said = nameOf(int32(e.Candidate.FinishReason), finishReasons)
	}
	return llm.BlockedError("reply", said)
}

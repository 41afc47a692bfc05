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

// responseBody is the part of a GenerateContentResponse that the SDK
// understands.
type responseBody struct {
	Candidates []struct {
		Content struct {
			Role  string         `json:"role,omitempty"`
			Parts []responsePart `json:"parts"`
		} `json:"content"`
		FinishReason enumValue `json:"finishReason,omitzero"`
	} `json:"candidates"`
	PromptFeedback *struct {
		BlockReason enumValue `json:"blockReason,omitzero"`
	} `json:"promptFeedback,omitzero"`
	UsageMetadata *usageMetadata `json:"usageMetadata,omitzero"`
}

type responsePart struct {
	Text    *string `json:"text"`
	Thought bool    `json:"thought,omitzero"`
}

type usageMetadata struct {
	PromptTokenCount     int32 `json:"promptTokenCount"`
	CandidatesTokenCount int32 `json:"candidatesTokenCount"`
	ThoughtsTokenCount   int32 `json:"thoughtsTokenCount,omitzero"`
	TotalTokenCount      int32 `json:"totalTokenCount"`
}

// enumValue is a name, or the number that the SDK requires.
type enumValue = json.RawMessage

// filterResponse rewrites a response before the SDK parses it, because the SDK
// returns thoughts as part of the answer, panics on parts without text, and
// drops unknown enum names, which may be the reason why there is no text.
func filterResponse(body []byte) ([]byte, error) {
	var a responseBody
	if err := strictjson.UnmarshalAllowUnknown(body, &a); err != nil {
		return nil, err
	}
	for i := range a.Candidates {
		c := &a.Candidates[i]
		parts := []responsePart{}
		for _, p := range c.Content.Parts {
			if p.Text != nil && !p.Thought {
				parts = append(parts, p)
			}
		}
		c.Content.Parts = parts
		c.FinishReason = enumNumber(c.FinishReason, finishReasons)
	}
	if f := a.PromptFeedback; f != nil {
		f.BlockReason = enumNumber(f.BlockReason, blockReasons)
	}
	if u := a.UsageMetadata; u != nil {
		// The SDK has no field for thoughts: they are the difference between
		// the total and the rest.
		u.TotalTokenCount = max(u.TotalTokenCount, addTokenCounts(u.PromptTokenCount, u.CandidatesTokenCount, u.ThoughtsTokenCount))
		u.ThoughtsTokenCount = 0
	}
	return strictjson.Marshal(&a)
}

// addTokenCounts adds untrusted counts: negative ones count as 0, and the sum
// saturates.
func addTokenCounts(counts ...int32) int32 {
	total := int64(0)
	for _, n := range counts {
		total += int64(max(n, 0))
	}
	return int32(min(total, math.MaxInt32))
}

// The SDK represents these enums as numbers: the index of the name.
var (
	finishReasons = []string{
		"FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER",
		"LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL",
	}
	blockReasons = []string{"BLOCK_REASON_UNSPECIFIED", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY"}
)

// unknownEnum is the number of an unknown name.
const unknownEnum = 99

// enumNumber converts a name to its number.
func enumNumber(value enumValue, names []string) enumValue {
	var name string
	if strictjson.UnmarshalAllowUnknown(value, &name) != nil || name == "" {
		return value
	}
	for i, n := range names {
		if n == name {
			return enumValue(strconv.Itoa(i))
		}
	}
	return enumValue(strconv.Itoa(unknownEnum))
}

func nameOf(n int32, names []string) string {
	if n >= 0 && int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprintf("reason %d", n)
}

// readResponse converts a response. The SDK returns an error only for a blocked
// prompt, SAFETY and RECITATION.
func readResponse(resp *genai.GenerateContentResponse) (*llm.Reply, error) {
	if len(resp.Candidates) == 0 {
		if resp.PromptFeedback != nil {
			return nil, llm.BlockedError("prompt", "")
		}
		return llm.NewReply("", llm.FinishComplete, "no candidates", contract.Tokens{})
	}
	candidate := resp.Candidates[0]
	finish := nameOf(int32(candidate.FinishReason), finishReasons)
	return llm.NewReply(contentText(candidate.Content), llm.GeminiFinishReason(finish), finish, tokenCounts(resp.UsageMetadata))
}

func contentText(content *genai.Content) string {
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

func tokenCounts(u *genai.UsageMetadata) contract.Tokens {
	if u == nil {
		return contract.Tokens{}
	}
	input, text, total := max(int(u.PromptTokenCount), 0), max(int(u.CandidatesTokenCount), 0), int(u.TotalTokenCount)
	return contract.Tokens{Input: input, Output: max(total-input, 0), Thinking: max(total-input-text, 0)}
}

// blockedError converts the error of the SDK for blocked content.
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

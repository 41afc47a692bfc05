package openai

import (
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// completionResponse is the part of a chat completion that is used. Members
// with thoughts (reasoning, reasoning_content) are ignored.
type completionResponse struct {
	Choices []struct {
		Message struct {
			Content *string `json:"content"`
			Refusal *string `json:"refusal"`
		} `json:"message"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
		Details          struct {
			ReasoningTokens int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	} `json:"usage"`
}

// decodeResponse decodes the body of a 200.
func decodeResponse(body []byte) (*llm.Reply, error) {
	var c completionResponse
	if err := strictjson.UnmarshalAllowUnknown(body, &c); err != nil {
		return nil, &llm.Error{Reason: llm.ReasonBadResponse, Status: 200, Detail: "the answer is not a chat completion", Err: err}
	}
	used := contract.Tokens{
		Input:    max(c.Usage.PromptTokens, 0),
		Output:   max(c.Usage.CompletionTokens, 0),
		Thinking: max(c.Usage.Details.ReasoningTokens, 0),
	}
	if len(c.Choices) == 0 {
		return llm.NewReply("", llm.FinishComplete, "no choices", used)
	}
	choice := c.Choices[0]
	if r := choice.Message.Refusal; r != nil && *r != "" {
		return nil, llm.BlockedError("reply", "refusal")
	}
	var text string
	if choice.Message.Content != nil {
		text = stripThoughts(*choice.Message.Content)
	}
	return llm.NewReply(text, finishReason(choice.FinishReason), choice.FinishReason, used)
}

func finishReason(finishReason string) llm.FinishReason {
	switch finishReason {
	case "length":
		return llm.FinishTruncated
	case "content_filter":
		return llm.FinishBlocked
	}
	return llm.FinishComplete
}

// stripThoughts removes thoughts from the start of a text, where some servers
// leave them. If they were cut off, nothing remains.
func stripThoughts(text string) string {
	rest, ok := strings.CutPrefix(strings.TrimLeft(text, " \r\n\t"), "<think>")
	if !ok {
		return text
	}
	_, answer, _ := strings.Cut(rest, "</think>")
	return strings.TrimLeft(answer, " \r\n\t")
}

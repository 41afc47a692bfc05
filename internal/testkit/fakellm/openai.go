package fakellm

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
)

// openaiProtocol implements the chat completions API of OpenAI, vLLM, Ollama
// and llama.cpp.
type openaiProtocol struct{}

const openaiBase = "/v1"

func (openaiProtocol) parseRoute(r *http.Request) (Operation, string) {
	path, ok := strings.CutPrefix(r.URL.Path, openaiBase)
	if !ok {
		return Other, ""
	}
	switch {
	case path == "/chat/completions" && r.Method == http.MethodPost:
		return Generate, "" // the model is in the body
	case path == "/models" && r.Method == http.MethodGet:
		return ListModels, ""
	case r.Method == http.MethodGet && strings.HasPrefix(path, "/models/"):
		return GetModel, strings.TrimPrefix(path, "/models/")
	default:
		return Other, ""
	}
}

func (openaiProtocol) readKey(r *http.Request) string {
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return key
}

func (openaiProtocol) refuseKey(got string) *errorSpec {
	if got == "" {
		return &errorSpec{status: 401, message: "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."}
	}
	return &errorSpec{status: 401, reason: "invalid_api_key", message: "Incorrect API key provided: " + got[:min(4, len(got))] + "****."}
}

func (openaiProtocol) unknownModel(model string) *errorSpec {
	return &errorSpec{status: 404, reason: "model_not_found", message: "The model `" + model + "` does not exist or you do not have access to it."}
}

func (openaiProtocol) noSuchPath(r *http.Request) Behaviour {
	return Behaviour{failure: &errorSpec{status: 404, reason: "unknown_url", message: fmt.Sprintf("Unknown request URL: %s %s. Please check the URL for typos.", r.Method, r.URL.Path)}}
}

func (openaiProtocol) defaultStatus(*errorSpec) int { return 401 }

func (openaiProtocol) encodeReply(r *Request, b *replySpec) any {
	text, thinking := TextTokens, 0
	if b.thought != "" {
		thinking = ThinkingTokens
	}
	if len(b.texts) == 0 {
		text = 0
	}
	out := jsonObject{
		"id": "chatcmpl-fake", "object": "chat.completion", "created": 1767366245, "model": r.Model, "system_fingerprint": nil,
		"choices": []any{},
		"usage": jsonObject{
			"prompt_tokens": InputTokens, "completion_tokens": text + thinking, "total_tokens": InputTokens + text + thinking,
			"completion_tokens_details": jsonObject{"reasoning_tokens": thinking},
		},
	}
	if !b.noCandidate {
		out["choices"] = []any{openaiChoice(b)}
	}
	return out
}

func openaiChoice(b *replySpec) jsonObject {
	message := jsonObject{"role": "assistant", "content": strings.Join(b.texts, ""), "refusal": nil}
	finish := "stop"
	switch b.finish {
	case "", FinishStop:
	case FinishMaxTokens:
		finish = "length"
	default:
		finish = "content_filter"
	}
	switch {
	case b.blocked != "":
		message["content"], finish = nil, "content_filter"
	case b.refusal != "":
		message["content"], message["refusal"], finish = nil, b.refusal, "stop"
	case b.thought != "":
		message["reasoning_content"] = b.thought
	}
	if len(b.texts) == 0 {
		message["content"] = nil
	}
	return jsonObject{"index": 0, "message": message, "logprobs": nil, "finish_reason": finish}
}

func (openaiProtocol) encodeFailure(_ *Request, f *errorSpec) any {
	var code any
	switch {
	case f.reason == reasonKeyInvalid:
		code = "invalid_api_key"
	case f.reason != "":
		code = f.reason
	case f.code == 429:
		code = "rate_limit_exceeded"
	}
	kind := "invalid_request_error"
	switch {
	case f.code == 403:
		kind = "request_forbidden"
	case f.code == 429:
		kind = "requests"
	case f.code >= 500:
		kind = "server_error"
	}
	return jsonObject{"error": jsonObject{"message": cmp.Or(f.message, openaiMessage(f)), "type": kind, "param": nil, "code": code}}
}

func openaiMessage(f *errorSpec) string {
	switch {
	case f.reason == reasonKeyInvalid, f.code == 401:
		return "Incorrect API key provided."
	case f.code >= 500:
		return "The server had an error while processing your request. Sorry about that!"
	default:
		return "Your request was malformed or missing some required parameters."
	}
}

func (openaiProtocol) encodeModel(name string) any {
	return jsonObject{"id": name, "object": "model", "created": 1767366245, "owned_by": "fake"}
}

func (o openaiProtocol) encodeModels(name string) any {
	return jsonObject{"object": "list", "data": []any{o.encodeModel(name)}}
}

package fakellm

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// geminiProtocol implements the Gemini REST API v1beta.
type geminiProtocol struct{}

const (
	geminiBase       = "/v1beta/models"
	reasonKeyInvalid = "API_KEY_INVALID"
)

// Token counts of every reply.
const (
	InputTokens    = 120
	TextTokens     = 30
	ThinkingTokens = 12 // if there are thoughts
)

func (geminiProtocol) parseRoute(r *http.Request) (Operation, string) {
	if r.URL.Path == geminiBase && r.Method == http.MethodGet {
		return ListModels, ""
	}
	rest, ok := strings.CutPrefix(r.URL.Path, geminiBase+"/")
	model, verb, hasVerb := strings.Cut(rest, ":")
	switch {
	case !ok:
		return Other, ""
	case hasVerb && verb == "generateContent" && r.Method == http.MethodPost:
		return Generate, model
	case !hasVerb && r.Method == http.MethodGet:
		return GetModel, model
	default:
		return Other, ""
	}
}

func (geminiProtocol) readKey(r *http.Request) string {
	return cmp.Or(r.Header.Get("X-Goog-Api-Key"), r.URL.Query().Get("key"))
}

func (geminiProtocol) refuseKey(got string) *errorSpec {
	if got == "" {
		return &errorSpec{status: 403, message: "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API."}
	}
	return &errorSpec{reason: reasonKeyInvalid}
}

func (geminiProtocol) unknownModel(model string) *errorSpec {
	return &errorSpec{status: 404, message: fmt.Sprintf("models/%s is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.", model)}
}

func (geminiProtocol) noSuchPath(r *http.Request) Behaviour {
	return Body(404, typeHTML, fmt.Sprintf("<!DOCTYPE html>\n<html lang=en>\n<title>Error 404 (Not Found)!!1</title>\n<p>The requested URL <code>%s</code> was not found on this server.", r.URL.Path))
}

func (geminiProtocol) defaultStatus(*errorSpec) int { return 400 } // also for an invalid key

func (geminiProtocol) encodeReply(r *Request, b *replySpec) any {
	// Google's generated clients request enums as numbers:
	// $alt=json;enum-encoding=int.
	enums := geminiEnums{integers: strings.Contains(r.URL, "enum-encoding")}
	usage := jsonObject{"promptTokenCount": InputTokens, "totalTokenCount": InputTokens}
	out := jsonObject{"usageMetadata": usage, "modelVersion": r.Model, "responseId": "fake"}
	if b.blocked != "" {
		out["promptFeedback"] = jsonObject{"blockReason": enums.encode(blockReasons(), b.blocked)}
		return out
	}
	text, thinking := TextTokens, 0
	if b.thought != "" {
		thinking = ThinkingTokens
		usage["thoughtsTokenCount"] = thinking
	}
	if len(b.texts) == 0 {
		text = 0
	} else {
		usage["candidatesTokenCount"] = text
	}
	usage["totalTokenCount"] = InputTokens + text + thinking
	if b.noCandidate {
		out["candidates"] = []any{}
		return out
	}
	out["candidates"] = []any{geminiCandidate(enums, b)}
	return out
}

func geminiCandidate(enums geminiEnums, b *replySpec) jsonObject {
	finish := cmp.Or(b.finish, FinishStop)
	c := jsonObject{"index": 0, "finishReason": enums.encode(finishReasons(), string(finish))}
	content := jsonObject{"role": "model"}
	var parts []any
	if b.thought != "" && finish != FinishMaxTokens {
		parts = append(parts, jsonObject{"text": b.thought, "thought": true})
	}
	for _, text := range b.texts {
		parts = append(parts, jsonObject{"text": text})
	}
	if parts != nil {
		content["parts"] = parts
	}
	// A blocked reply has no content.
	if parts != nil || finish == FinishStop || finish == FinishMaxTokens {
		c["content"] = content
	}
	return c
}

func (geminiProtocol) encodeFailure(_ *Request, f *errorSpec) any {
	e := jsonObject{"code": f.code, "message": cmp.Or(f.message, geminiMessage(f)), "status": geminiStatus(f.code)}
	if details := geminiDetails(f); details != nil {
		e["details"] = details
	}
	return jsonObject{"error": e}
}

func geminiMessage(f *errorSpec) string {
	switch {
	case f.reason == reasonKeyInvalid:
		return "API key not valid. Please pass a valid API key."
	case f.code == 429:
		return "You exceeded your current quota, please check your plan and billing details. Please retry in " + cmp.Or(f.retryDelay, "a while") + "."
	case f.code >= 500:
		return "The model is overloaded. Please try again later."
	default:
		return "Request contains an invalid argument."
	}
}

func geminiDetails(f *errorSpec) []any {
	const rpc = "type.googleapis.com/google.rpc."
	if f.reason == reasonKeyInvalid {
		return []any{jsonObject{"@type": rpc + "ErrorInfo", "reason": f.reason, "domain": "googleapis.com"}}
	}
	if d, err := time.ParseDuration(f.retryDelay); err == nil {
		return []any{jsonObject{"@type": rpc + "RetryInfo", "retryDelay": fmt.Sprintf("%gs", d.Seconds())}}
	}
	return nil
}

func geminiStatus(code int) string {
	statuses := map[int]string{
		401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED",
		500: "INTERNAL", 502: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED", 529: "INTERNAL",
	}
	return cmp.Or(statuses[code], "INVALID_ARGUMENT")
}

func (geminiProtocol) encodeModel(name string) any {
	return jsonObject{
		"name": "models/" + name, "version": "001", "displayName": name,
		"inputTokenLimit": 1 << 20, "outputTokenLimit": 1 << 16,
		"supportedGenerationMethods": []any{"generateContent", "countTokens"},
	}
}

func (g geminiProtocol) encodeModels(name string) any {
	return jsonObject{"models": []any{g.encodeModel(name)}}
}

// geminiEnums encodes enums as names, or as numbers if the client requests it.
type geminiEnums struct{ integers bool }

// encode encodes one value. The lists are in the order of the API's numbers.
func (e geminiEnums) encode(list []string, name string) any {
	if !e.integers {
		return name
	}
	return max(slices.Index(list, name), 0)
}

func finishReasons() []string {
	return []string{
		"FINISH_REASON_UNSPECIFIED", string(FinishStop), string(FinishMaxTokens), string(FinishSafety), string(FinishRecitation),
		string(FinishOther), string(FinishLanguage), string(FinishBlocklist), string(FinishProhibited), string(FinishSPII),
	}
}

func blockReasons() []string {
	return []string{"BLOCK_REASON_UNSPECIFIED", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY"}
}

func schemaTypes() []string {
	return []string{"TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}
}

// enumName decodes an enum: a name or a number.
func enumName(list []string, v any) string {
	switch v := v.(type) {
	case string:
		return strings.ToUpper(v)
	case float64:
		if i := int(v); i >= 0 && i < len(list) {
			return list[i]
		}
	}
	return ""
}

package fakellm

import (
	"cmp"
	"fmt"
	"net/http"
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
		out["promptFeedback"] = jsonObject{"blockReason": enums.encode(blockReasons, b.blocked)}
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
	c := jsonObject{"index": 0, "finishReason": enums.encode(finishReasons, string(finish))}
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
	probability := "NEGLIGIBLE"
	if finish == FinishSafety {
		probability = "HIGH"
	}
	c["safetyRatings"] = []any{jsonObject{
		"category":    enums.encode(harmCategories, "HARM_CATEGORY_DANGEROUS_CONTENT"),
		"probability": enums.encode(harmProbabilities, probability),
		"blocked":     finish == FinishSafety,
	}}
	if finish == FinishRecitation {
		c["citationMetadata"] = jsonObject{"citationSources": []any{jsonObject{"startIndex": 0, "endIndex": 200, "uri": "https://example.com/source"}}}
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
	case f.code == 401:
		return "Request had invalid authentication credentials."
	case f.code == 404:
		return "Requested entity was not found."
	case f.code == 403:
		return "The caller does not have permission."
	case f.code == 429:
		return "You exceeded your current quota, please check your plan and billing details. Please retry in " + cmp.Or(f.retryDelay, "a while") + "."
	case f.code == 503:
		return "The model is overloaded. Please try again later."
	case f.code >= 500:
		return "An internal error has occurred. Please retry or report it."
	default:
		return "Request contains an invalid argument."
	}
}

func geminiDetails(f *errorSpec) []any {
	const rpc = "type.googleapis.com/google.rpc."
	switch {
	case f.reason == reasonKeyInvalid:
		return []any{
			jsonObject{"@type": rpc + "ErrorInfo", "reason": f.reason, "domain": "googleapis.com", "metadata": jsonObject{"service": "generativelanguage.googleapis.com"}},
			jsonObject{"@type": rpc + "LocalizedMessage", "locale": "en-US", "message": geminiMessage(f)},
		}
	case f.code == 429:
		details := []any{
			jsonObject{"@type": rpc + "QuotaFailure", "violations": []any{jsonObject{
				"quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
				"quotaId":     "GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "quotaValue": "10",
			}}},
			jsonObject{"@type": rpc + "Help", "links": []any{jsonObject{"description": "Learn more about Gemini API quotas", "url": "https://ai.google.dev/gemini-api/docs/rate-limits"}}},
		}
		if d, err := time.ParseDuration(f.retryDelay); err == nil {
			details = append(details, jsonObject{"@type": rpc + "RetryInfo", "retryDelay": fmt.Sprintf("%gs", d.Seconds())})
		}
		return details
	default:
		return nil
	}
}

func geminiStatus(code int) string {
	switch code {
	case 401:
		return "UNAUTHENTICATED"
	case 403:
		return "PERMISSION_DENIED"
	case 404:
		return "NOT_FOUND"
	case 429:
		return "RESOURCE_EXHAUSTED"
	case 499:
		return "CANCELLED"
	case 503:
		return "UNAVAILABLE"
	case 504:
		return "DEADLINE_EXCEEDED"
	}
	if code >= 500 {
		return "INTERNAL"
	}
	return "INVALID_ARGUMENT"
}

func (geminiProtocol) encodeModel(name string) any {
	return jsonObject{
		"name": "models/" + name, "version": "001", "displayName": name,
		"inputTokenLimit": 1 << 20, "outputTokenLimit": 1 << 16,
		"supportedGenerationMethods": []any{"generateContent", "countTokens"},
		"temperature":                1, "topP": 0.95, "topK": 64, "maxTemperature": 2, "thinking": true,
	}
}

func (g geminiProtocol) encodeModels(name string) any {
	return jsonObject{"models": []any{g.encodeModel(name)}}
}

// geminiEnums encodes enums as names, or as numbers if the client requests it.
type geminiEnums struct{ integers bool }

// encode encodes one value. The lists are in the order of the API's numbers.
func (e geminiEnums) encode(list func() []string, name string) any {
	if !e.integers {
		return name
	}
	for i, n := range list() {
		if n == name {
			return i
		}
	}
	return 0
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

func harmCategories() []string {
	return []string{
		"HARM_CATEGORY_UNSPECIFIED", "HARM_CATEGORY_DEROGATORY", "HARM_CATEGORY_TOXICITY", "HARM_CATEGORY_VIOLENCE",
		"HARM_CATEGORY_SEXUAL", "HARM_CATEGORY_MEDICAL", "HARM_CATEGORY_DANGEROUS", "HARM_CATEGORY_HARASSMENT",
		"HARM_CATEGORY_HATE_SPEECH", "HARM_CATEGORY_SEXUALLY_EXPLICIT", "HARM_CATEGORY_DANGEROUS_CONTENT",
	}
}

func harmProbabilities() []string {
	return []string{"HARM_PROBABILITY_UNSPECIFIED", "NEGLIGIBLE", "LOW", "MEDIUM", "HIGH"}
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

package fakellm

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// geminiWire is the Gemini REST API, v1beta.
type geminiWire struct{}

const (
	geminiBase       = "/v1beta/models"
	reasonKeyInvalid = "API_KEY_INVALID"
)

// Tokens every reply claims to have cost.
const (
	InputTokens    = 120
	TextTokens     = 30
	ThinkingTokens = 12 // with thoughts only
)

func (geminiWire) route(r *http.Request) (Operation, string) {
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

func (geminiWire) key(r *http.Request) string {
	return cmp.Or(r.Header.Get("X-Goog-Api-Key"), r.URL.Query().Get("key"))
}

func (geminiWire) refuseKey(got string) *failure {
	if got == "" {
		return &failure{status: 403, message: "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API."}
	}
	return &failure{reason: reasonKeyInvalid}
}

func (geminiWire) unknownModel(model string) *failure {
	return &failure{status: 404, message: fmt.Sprintf("models/%s is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.", model)}
}

func (geminiWire) noSuchPath(r *http.Request) Behaviour {
	return Body(404, typeHTML, fmt.Sprintf("<!DOCTYPE html>\n<html lang=en>\n<title>Error 404 (Not Found)!!1</title>\n<p>The requested URL <code>%s</code> was not found on this server.", r.URL.Path))
}

func (geminiWire) status(*failure) int { return 400 } // also for a key that does not exist

func (geminiWire) reply(r *Request, b *reply) any {
	// The generated clients of Google ask for enums as numbers: $alt=json;enum-encoding=int.
	enums := geminiEnums{integers: strings.Contains(r.URL, "enum-encoding")}
	usage := object{"promptTokenCount": InputTokens, "totalTokenCount": InputTokens}
	out := object{"usageMetadata": usage, "modelVersion": r.Model, "responseId": "fake"}
	if b.blocked != "" {
		out["promptFeedback"] = object{"blockReason": enums.of(blockReasons, b.blocked)}
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

func geminiCandidate(enums geminiEnums, b *reply) object {
	finish := cmp.Or(b.finish, FinishStop)
	c := object{"index": 0, "finishReason": enums.of(finishReasons, string(finish))}
	content := object{"role": "model"}
	var parts []any
	if b.thought != "" && finish != FinishMaxTokens {
		parts = append(parts, object{"text": b.thought, "thought": true})
	}
	for _, text := range b.texts {
		parts = append(parts, object{"text": text})
	}
	if parts != nil {
		content["parts"] = parts
	}
	// A reply that is withheld has no content at all.
	if parts != nil || finish == FinishStop || finish == FinishMaxTokens {
		c["content"] = content
	}
	probability := "NEGLIGIBLE"
	if finish == FinishSafety {
		probability = "HIGH"
	}
	c["safetyRatings"] = []any{object{
		"category":    enums.of(harmCategories, "HARM_CATEGORY_DANGEROUS_CONTENT"),
		"probability": enums.of(harmProbabilities, probability),
		"blocked":     finish == FinishSafety,
	}}
	if finish == FinishRecitation {
		c["citationMetadata"] = object{"citationSources": []any{object{"startIndex": 0, "endIndex": 200, "uri": "https://example.com/source"}}}
	}
	return c
}

func (geminiWire) failure(_ *Request, f *failure) any {
	e := object{"code": f.code, "message": cmp.Or(f.message, geminiMessage(f)), "status": geminiStatus(f.code)}
	if details := geminiDetails(f); details != nil {
		e["details"] = details
	}
	return object{"error": e}
}

func geminiMessage(f *failure) string {
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

func geminiDetails(f *failure) []any {
	const rpc = "type.googleapis.com/google.rpc."
	switch {
	case f.reason == reasonKeyInvalid:
		return []any{
			object{"@type": rpc + "ErrorInfo", "reason": f.reason, "domain": "googleapis.com", "metadata": object{"service": "generativelanguage.googleapis.com"}},
			object{"@type": rpc + "LocalizedMessage", "locale": "en-US", "message": geminiMessage(f)},
		}
	case f.code == 429:
		details := []any{
			object{"@type": rpc + "QuotaFailure", "violations": []any{object{
				"quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
				"quotaId":     "GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "quotaValue": "10",
			}}},
			object{"@type": rpc + "Help", "links": []any{object{"description": "Learn more about Gemini API quotas", "url": "https://ai.google.dev/gemini-api/docs/rate-limits"}}},
		}
		if d, err := time.ParseDuration(f.retryDelay); err == nil {
			details = append(details, object{"@type": rpc + "RetryInfo", "retryDelay": fmt.Sprintf("%gs", d.Seconds())})
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

func (geminiWire) model(name string) any {
	return object{
		"name": "models/" + name, "version": "001", "displayName": name,
		"inputTokenLimit": 1 << 20, "outputTokenLimit": 1 << 16,
		"supportedGenerationMethods": []any{"generateContent", "countTokens"},
		"temperature":                1, "topP": 0.95, "topK": 64, "maxTemperature": 2, "thinking": true,
	}
}

func (g geminiWire) models(name string) any { return object{"models": []any{g.model(name)}} }

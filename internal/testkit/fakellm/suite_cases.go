package fakellm

import (
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/internal/llm"
)

// providerFailure is a behaviour that a provider must convert to an error.
type providerFailure struct {
	name   string
	does   Behaviour
	want   []string // acceptable reasons
	status int      // of the error; 0 = any
}

func providerFailures() []providerFailure {
	var all []providerFailure
	for _, list := range [][]providerFailure{statusFailures(), connectionFailures(), blockedReplies(), invalidResponses()} {
		all = append(all, list...)
	}
	return all
}

func statusFailures() []providerFailure {
	var all []providerFailure
	for _, c := range []struct {
		status int
		reason string
	}{
		{400, llm.ReasonRejected},
		{401, llm.ReasonUnauthorized},
		{403, llm.ReasonUnauthorized},
		{404, llm.ReasonRejected},
		{405, llm.ReasonRejected},
		{409, llm.ReasonRejected},
		{413, llm.ReasonRejected},
		{422, llm.ReasonRejected},
		{429, llm.ReasonRateLimited},
		{500, llm.ReasonUnavailable},
		{502, llm.ReasonUnavailable},
		{503, llm.ReasonUnavailable},
		{504, llm.ReasonUnavailable},
		{529, llm.ReasonUnavailable},
	} {
		all = append(
			all,
			providerFailure{fmt.Sprint(c.status), Status(c.status), []string{c.reason}, c.status},
			providerFailure{fmt.Sprintf("%d of a proxy", c.status), Body(c.status, typeHTML, proxyPage), []string{c.reason}, c.status},
		)
	}
	return append(
		all,
		providerFailure{"503 without a body", Body(503, "", ""), []string{llm.ReasonUnavailable}, 503},
		providerFailure{"a redirect", Redirect("/elsewhere"), []string{llm.ReasonRejected, llm.ReasonBadResponse}, 0},
		providerFailure{"content filter before the model", PolicyRejected(), []string{llm.ReasonBlocked, llm.ReasonRejected}, 400},
		providerFailure{"key invalid", KeyInvalid(), []string{llm.ReasonUnauthorized}, 0},
		providerFailure{"400 with key and prompt", Echo(400), []string{llm.ReasonRejected}, 400},
		providerFailure{"403 with key and prompt", Echo(403), []string{llm.ReasonUnauthorized}, 403},
		providerFailure{"429 with key and prompt", Echo(429), []string{llm.ReasonRateLimited}, 429},
		providerFailure{"500 with key and prompt", Echo(500), []string{llm.ReasonUnavailable}, 500},
	)
}

func connectionFailures() []providerFailure {
	gone := []string{llm.ReasonUnavailable}
	return []providerFailure{
		{"reset", Reset(), gone, 0},
		{"closed", Closed(), gone, 0},
		{"reset in the middle of the body", ResetMidway(), gone, 0},
		{"closed in the middle of the body", ClosedMidway(), gone, 0},
	}
}

// blockedReplies are blocked or empty replies.
func blockedReplies() []providerFailure {
	blocked, empty := []string{llm.ReasonBlocked}, []string{llm.ReasonEmpty}
	either := []string{llm.ReasonBlocked, llm.ReasonEmpty}
	return []providerFailure{
		{"prompt blocked: SAFETY", PromptBlocked("SAFETY"), blocked, 0},
		{"prompt blocked: PROHIBITED_CONTENT", PromptBlocked("PROHIBITED_CONTENT"), blocked, 0},
		{"prompt blocked: OTHER", PromptBlocked("OTHER"), blocked, 0},
		{"SAFETY", WithFinish(FinishSafety, ""), blocked, 0},
		{"SAFETY with the start of a text", WithFinish(FinishSafety, `{"intent":`), blocked, 0},
		{"RECITATION", WithFinish(FinishRecitation, ""), blocked, 0},
		{"BLOCKLIST", WithFinish(FinishBlocklist, ""), blocked, 0},
		{"PROHIBITED_CONTENT", WithFinish(FinishProhibited, ""), blocked, 0},
		{"SPII", WithFinish(FinishSPII, ""), blocked, 0},
		{"refusal", Refused("I cannot help with that."), blocked, 0},
		{"OTHER", WithFinish(FinishOther, ""), either, 0},
		{"LANGUAGE", WithFinish(FinishLanguage, ""), either, 0},
		{"no candidates", NoCandidates(), empty, 0},
		{"no text", WithFinish(FinishStop, ""), empty, 0},
		{"empty text", Text(""), empty, 0},
		{"only thoughts", OnlyThoughts("I think"), empty, 0},
	}
}

const proxyPage = "<!DOCTYPE html><html><head><title>Gateway</title></head><body><h1>Sorry</h1></body></html>"

// invalidResponses have status 200 but no valid reply.
func invalidResponses() []providerFailure {
	bad := []string{llm.ReasonBadResponse}
	hollow := []string{llm.ReasonBadResponse, llm.ReasonEmpty}
	// For both protocols: each reads its own members.
	const wrongText = `{"candidates":[{"content":{"parts":[{"text":5}]},"finishReason":"STOP"}],"choices":[{"message":{"content":5},"finish_reason":"stop"}]}`
	text := func(quoted string) string { return strings.ReplaceAll(wrongText, `:5}`, ":"+quoted+"}") }
	return []providerFailure{
		{"broken UTF-8", Body(200, typeJSON, text("\"caf\xe9\"")), bad, 0},
		{"half a surrogate pair", Body(200, typeJSON, text(`"\ud83d"`)), bad, 0},
		{"duplicate member", Body(200, typeJSON, `{"candidates":[],"candidates":[],"choices":[],"choices":[]}`), bad, 0},
		{"an unrequested stream", Body(200, "text/event-stream", "data: {\"candidates\":[],\"choices\":[]}\n\n"), bad, 0},
		{"HTML", Body(200, typeHTML, proxyPage), bad, 0},
		{"HTML with the JSON content type", Body(200, typeJSON, proxyPage), bad, 0},
		{"plain text", Body(200, "text/plain", "upstream connect error"), bad, 0},
		{"nothing", Body(200, typeJSON, ""), bad, 0},
		{"truncated JSON", Body(200, typeJSON, `{"candidates":[{"content"`), bad, 0},
		{"two JSON objects", Body(200, typeJSON, `{"candidates":[]}{"candidates":[]}`), bad, 0},
		{"array", Body(200, typeJSON, `[]`), bad, 0},
		{"null", Body(200, typeJSON, `null`), hollow, 0},
		{"a string", Body(200, typeJSON, `"hello"`), bad, 0},
		{"empty object", Body(200, typeJSON, `{}`), hollow, 0},
		{"another API", Body(200, typeJSON, `{"message":"hello","done":true}`), hollow, 0},
		{"string as candidates", Body(200, typeJSON, `{"candidates":"none","choices":"none"}`), bad, 0},
		{"null candidate", Body(200, typeJSON, `{"candidates":[null],"choices":[null]}`), hollow, 0},
		{"number as text", Body(200, typeJSON, wrongText), bad, 0},
		{"no content", Body(204, "", ""), hollow, 0},
		{"error object with 200", ErrorWith200(503), bad, 0},
		{"list with an error object and 200", Body(200, typeJSON, `[{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}]`), bad, 0},
		{"10 MB", Huge(10 << 20), bad, 0},
		{"10 MB in a few KB of gzip", CompressionBomb(10 << 20), bad, 0},
	}
}

// endlessReplies end only when the caller's deadline expires.
func endlessReplies() []providerFailure {
	timeout := []string{llm.ReasonTimeout}
	return []providerFailure{
		{"no response", Hang(), timeout, 0},
		{"headers without a body", Silence(), timeout, 0},
		{"one byte at a time", SlowDrip(), timeout, 0},
		{"delayed reply", Text(ValidReply()).Held(NewHold()), timeout, 0},
	}
}

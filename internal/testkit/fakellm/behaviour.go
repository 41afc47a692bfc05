package fakellm

import (
	"context"
	"net/http"
	"time"
)

// FinishReason is a finish reason of Gemini. OpenAI has fewer: reasons other than FinishStop and
// FinishMaxTokens become content_filter.
type FinishReason string

// Finish reasons.
const (
	FinishStop       FinishReason = "STOP"
	FinishMaxTokens  FinishReason = "MAX_TOKENS"
	FinishSafety     FinishReason = "SAFETY"
	FinishRecitation FinishReason = "RECITATION"
	FinishLanguage   FinishReason = "LANGUAGE"
	FinishOther      FinishReason = "OTHER"
	FinishBlocklist  FinishReason = "BLOCKLIST"
	FinishProhibited FinishReason = "PROHIBITED_CONTENT"
	FinishSPII       FinishReason = "SPII"
)

// Behaviour is a server's response to one call. The functions of this package
// create them. The zero value replies with an empty text.
type Behaviour struct {
	reply   replySpec
	failure *errorSpec      // if set: an error in the format of the API
	raw     *rawResponse    // if set: a raw HTTP response
	fault   connectionFault // if set: a fault below HTTP
	hold    *Hold
}

// replySpec is a reply with status 200.
type replySpec struct {
	thought     string // separate from the text
	texts       []string
	finish      FinishReason // "" = FinishStop
	noCandidate bool
	blocked     string // block reason of the prompt, as in Gemini
	refusal     string // the model's refusal, a separate member in OpenAI's API
	filler      int    // size of a generated text in bytes
	compressed  bool   // if the client accepts gzip
}

// errorSpec is an error of the API.
type errorSpec struct {
	status     int    // HTTP status, also in the body unless code is set
	code       int    // in the body; 0 = status
	retryAfter string // the header
	retryDelay string // google.rpc.RetryInfo; Gemini only
	reason     string // google.rpc.ErrorInfo, or OpenAI's code
	message    string // "" = the server's default
	echo       bool   // repeat the key and the prompt in the message
}

// rawResponse is an arbitrary HTTP response.
type rawResponse struct {
	status      int
	contentType string
	location    string
	body        string
}

// connectionFault handles a request without a valid HTTP response. It returns when the
// client disconnects or the test ends.
type connectionFault func(ctx context.Context, w http.ResponseWriter)

// Text replies with a text.
func Text(text string) Behaviour { return Parts(text) }

// Parts replies with a text in several parts, if the protocol has parts.
func Parts(texts ...string) Behaviour { return Behaviour{reply: replySpec{texts: texts}} }

// Thoughts replies with thoughts and a text.
func Thoughts(thought, text string) Behaviour {
	return Behaviour{reply: replySpec{thought: thought, texts: []string{text}}}
}

// OnlyThoughts replies with thoughts and no text.
func OnlyThoughts(thought string) Behaviour { return Behaviour{reply: replySpec{thought: thought}} }

// WithFinish replies with a text and a finish reason. If the text is empty
// there is no part at all, as in a blocked reply.
func WithFinish(why FinishReason, text string) Behaviour {
	b := Behaviour{reply: replySpec{finish: why}}
	if text != "" {
		b.reply.texts = []string{text}
	}
	return b
}

// CutOff replies with a truncated text.
func CutOff(text string) Behaviour { return WithFinish(FinishMaxTokens, text) }

// CutOffWhileThinking replies without text, because thinking used all tokens.
func CutOffWhileThinking() Behaviour {
	return Behaviour{reply: replySpec{thought: "First, I consider the question", finish: FinishMaxTokens}}
}

// NoCandidates replies without candidates (choices).
func NoCandidates() Behaviour { return Behaviour{reply: replySpec{noCandidate: true}} }

// PromptBlocked replies that the prompt was blocked, with a reason such as
// SAFETY.
func PromptBlocked(why string) Behaviour { return Behaviour{reply: replySpec{blocked: why}} }

// Refused replies with a refusal of the model.
func Refused(why string) Behaviour {
	return Behaviour{reply: replySpec{refusal: why, finish: FinishProhibited}}
}

// Status replies with an error status.
func Status(code int) Behaviour { return Behaviour{failure: &errorSpec{status: code}} }

// RateLimited replies with 429 and a Retry-After header: seconds or a date.
func RateLimited(retryAfter string) Behaviour {
	return Behaviour{failure: &errorSpec{status: 429, retryAfter: retryAfter}}
}

// QuotaExceeded replies with 429 like Gemini, which sends the delay in the
// body. In OpenAI's protocol it is in the header.
func QuotaExceeded(delay time.Duration) Behaviour {
	return Behaviour{failure: &errorSpec{status: 429, retryDelay: delay.String()}}
}

// KeyInvalid replies as for an invalid key: 400 with the reason
// API_KEY_INVALID, or 401.
func KeyInvalid() Behaviour { return Behaviour{failure: &errorSpec{reason: reasonKeyInvalid}} }

// Echo replies with an error message that repeats the key and the prompt.
func Echo(code int) Behaviour { return Behaviour{failure: &errorSpec{status: code, echo: true}} }

// PolicyRejected replies with 400 like a content filter in front of the model.
func PolicyRejected() Behaviour {
	return Behaviour{failure: &errorSpec{status: 400, reason: "content_filter", message: "The prompt was filtered by the content management policy."}}
}

// ErrorWith200 replies with an error body and status 200.
func ErrorWith200(code int) Behaviour { return Behaviour{failure: &errorSpec{status: 200, code: code}} }

// Body replies with arbitrary bytes.
func Body(status int, contentType, body string) Behaviour {
	return Behaviour{raw: &rawResponse{status: status, contentType: contentType, body: body}}
}

// Redirect replies with 307.
func Redirect(location string) Behaviour {
	return Behaviour{raw: &rawResponse{status: 307, contentType: "text/plain", location: location}}
}

// Huge replies with a text of the given size.
func Huge(bytes int) Behaviour { return Behaviour{reply: replySpec{filler: bytes}} }

// CompressionBomb is Huge, compressed if the client accepts gzip.
func CompressionBomb(bytes int) Behaviour {
	return Behaviour{reply: replySpec{filler: bytes, compressed: true}}
}

// Reset resets the connection before a response.
func Reset() Behaviour { return Behaviour{fault: closeConnection("", true)} }

// Closed closes the connection before a response.
func Closed() Behaviour { return Behaviour{fault: closeConnection("", false)} }

// ResetMidway resets the connection in the middle of the body.
func ResetMidway() Behaviour { return Behaviour{fault: closeConnection(partialResponse, true)} }

// ClosedMidway closes the connection before the end of the body.
func ClosedMidway() Behaviour { return Behaviour{fault: closeConnection(partialResponse, false)} }

// Hang sends nothing until the client disconnects.
func Hang() Behaviour { return Behaviour{fault: sendNothing} }

// Silence sends headers, and then nothing until the client disconnects.
func Silence() Behaviour { return Behaviour{fault: sendHeaders} }

// SlowDrip sends headers, and then single bytes forever.
func SlowDrip() Behaviour { return Behaviour{fault: dripBody} }

// Held returns the behaviour, delayed until h is released.
func (b Behaviour) Held(h *Hold) Behaviour {
	b.hold = h
	return b
}

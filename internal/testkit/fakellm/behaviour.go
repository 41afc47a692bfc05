package fakellm

import "time"

// Finish says why a model stopped writing, in Gemini's words. The other wire has
// fewer: what is neither FinishStop nor FinishMaxTokens is content_filter there.
type Finish string

// The ends of a reply.
const (
	FinishStop       Finish = "STOP"
	FinishMaxTokens  Finish = "MAX_TOKENS"
	FinishSafety     Finish = "SAFETY"
	FinishRecitation Finish = "RECITATION"
	FinishLanguage   Finish = "LANGUAGE"
	FinishOther      Finish = "OTHER"
	FinishBlocklist  Finish = "BLOCKLIST"
	FinishProhibited Finish = "PROHIBITED_CONTENT"
	FinishSPII       Finish = "SPII"
)

// Behaviour is what a server does with one call. The functions of this package
// make them; the zero value replies with an empty text.
type Behaviour struct {
	reply   reply
	failure *failure // instead of the reply: an error in the wire's envelope
	raw     *raw     // instead of the reply: any bytes
	fault   fault    // instead of the reply: what goes wrong below HTTP
	hold    *Hold
}

// reply is a 200 in the wire's envelope.
type reply struct {
	thought     string // what the model thought, apart from its text
	texts       []string
	finish      Finish // "" = FinishStop
	noCandidate bool
	blocked     string // why the prompt was, in Gemini's words
	refusal     string // the model's own; OpenAI has a member for it
	filler      int    // that many bytes of text, made when they are sent
	compressed  bool   // for whoever accepts gzip
}

// failure is an error of the API.
type failure struct {
	status     int    // of HTTP; the envelope says the same unless code does
	code       int    // in the envelope; 0 = status
	retryAfter string // the header
	retryDelay string // google.rpc.RetryInfo; Gemini only
	reason     string // google.rpc.ErrorInfo, or OpenAI's code
	message    string // "" = what the server says to this status
	echo       bool   // the message repeats the key and what was asked
}

// raw is a response that no model's server should give.
type raw struct {
	status      int
	contentType string
	location    string
	body        string
}

type fault int

const (
	noFault     fault = iota
	faultReset        // connection reset before anything was said
	faultEOF          // connection closed instead
	faultMidway       // connection reset in the middle of the body
	faultCut          // connection closed before the end of the body
	faultMute         // nothing is said at all
	faultSilent       // headers, then nothing
	faultDrip         // headers, then a space now and then
)

// Text replies with a text.
func Text(text string) Behaviour { return Parts(text) }

// Parts replies with a text in several parts, where the wire has parts.
func Parts(texts ...string) Behaviour { return Behaviour{reply: reply{texts: texts}} }

// Thoughts replies with what the model thought and then the text.
func Thoughts(thought, text string) Behaviour {
	return Behaviour{reply: reply{thought: thought, texts: []string{text}}}
}

// OnlyThoughts replies with thoughts and nothing else.
func OnlyThoughts(thought string) Behaviour { return Behaviour{reply: reply{thought: thought}} }

// Finished replies with a text that ended for a reason. Without a text there is
// no part at all, as when the reply was blocked or the budget went into thinking.
func Finished(why Finish, text string) Behaviour {
	b := Behaviour{reply: reply{finish: why}}
	if text != "" {
		b.reply.texts = []string{text}
	}
	return b
}

// CutOff replies with what the output budget allowed.
func CutOff(text string) Behaviour { return Finished(FinishMaxTokens, text) }

// ThoughtAway is CutOff when thinking took the whole budget.
func ThoughtAway() Behaviour {
	return Behaviour{reply: reply{thought: "First, I consider what was asked", finish: FinishMaxTokens}}
}

// NoCandidates replies with an empty list of candidates (choices).
func NoCandidates() Behaviour { return Behaviour{reply: reply{noCandidate: true}} }

// PromptBlocked refuses the prompt, with a reason such as SAFETY.
func PromptBlocked(why string) Behaviour { return Behaviour{reply: reply{blocked: why}} }

// Refused is the model's own refusal.
func Refused(why string) Behaviour {
	return Behaviour{reply: reply{refusal: why, finish: FinishProhibited}}
}

// Status fails with an HTTP status.
func Status(code int) Behaviour { return Behaviour{failure: &failure{status: code}} }

// RateLimited fails with 429 and a Retry-After header: seconds or a date.
func RateLimited(retryAfter string) Behaviour {
	return Behaviour{failure: &failure{status: 429, retryAfter: retryAfter}}
}

// QuotaExceeded fails with 429 as Gemini does, which has no Retry-After: the
// delay is in the envelope. The other wire says it in the header.
func QuotaExceeded(delay time.Duration) Behaviour {
	return Behaviour{failure: &failure{status: 429, retryDelay: delay.String()}}
}

// KeyInvalid fails as for a key that does not exist: 400 with the reason
// API_KEY_INVALID, or 401.
func KeyInvalid() Behaviour { return Behaviour{failure: &failure{reason: reasonKeyInvalid}} }

// Echo fails with a message that repeats the key and what was asked.
func Echo(code int) Behaviour { return Behaviour{failure: &failure{status: code, echo: true}} }

// PolicyRefused fails with 400 for a prompt that a filter in front of the model
// does not let through, as some servers of the OpenAI wire do.
func PolicyRefused() Behaviour {
	return Behaviour{failure: &failure{status: 400, reason: "content_filter", message: "The prompt was filtered by the content management policy."}}
}

// ErrorWith200 is an error in the wire's envelope under the status 200.
func ErrorWith200(code int) Behaviour { return Behaviour{failure: &failure{status: 200, code: code}} }

// Body answers with any bytes.
func Body(status int, contentType, body string) Behaviour {
	return Behaviour{raw: &raw{status: status, contentType: contentType, body: body}}
}

// Redirect answers with 307 to somewhere else.
func Redirect(location string) Behaviour {
	return Behaviour{raw: &raw{status: 307, contentType: "text/plain", location: location}}
}

// Huge replies with a text of so many bytes.
func Huge(bytes int) Behaviour { return Behaviour{reply: reply{filler: bytes}} }

// CompressionBomb is Huge, compressed into next to nothing for whoever accepts gzip.
func CompressionBomb(bytes int) Behaviour {
	return Behaviour{reply: reply{filler: bytes, compressed: true}}
}

// Reset resets the connection instead of answering.
func Reset() Behaviour { return Behaviour{fault: faultReset} }

// Closed closes the connection instead of answering.
func Closed() Behaviour { return Behaviour{fault: faultEOF} }

// ResetMidway resets the connection in the middle of the body.
func ResetMidway() Behaviour { return Behaviour{fault: faultMidway} }

// ClosedMidway closes the connection before the end of the body.
func ClosedMidway() Behaviour { return Behaviour{fault: faultCut} }

// Hang says nothing until the client goes away.
func Hang() Behaviour { return Behaviour{fault: faultMute} }

// Silence sends headers and then nothing until the client goes away.
func Silence() Behaviour { return Behaviour{fault: faultSilent} }

// SlowDrip sends headers and then a byte now and then, and never comes to an end.
func SlowDrip() Behaviour { return Behaviour{fault: faultDrip} }

// Held is the behaviour, kept back until h is released.
func (b Behaviour) Held(h *Hold) Behaviour {
	b.hold = h
	return b
}

package fakellm

import (
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/llm"
)

// ReplyCase is a reply to a classification, and the expected result if the model replies so to
// every call, including repair calls.
type ReplyCase struct {
	Name      string
	Behaviour Behaviour
	// WantReason is the expected reason of the classification; "" = the reply
	// is accepted.
	WantReason string
	// WantAlso lists other acceptable reasons, because strict and lenient
	// parsers may differ.
	WantAlso []string
	// WantIntent is the intent of an accepted reply.
	WantIntent string
	// Endless means that the reply ends only with the caller's deadline.
	Endless bool
}

// Accepts reports whether the reason is acceptable.
func (s *ReplyCase) Accepts(reason string) bool {
	return reason == s.WantReason || slices.Contains(s.WantAlso, reason)
}

// ReplyCases returns all cases for a registry with ValidIntent and validDomain. The
// registry must not contain an intent or domain made_up.
func ReplyCases() []ReplyCase {
	d := validDraft()
	var all []ReplyCase
	for _, list := range [][]textCase{
		d.validCases(), d.wrappedCases(), d.syntaxCases(), d.memberNameCases(), d.typeCases(), d.vocabularyCases(), d.numberCases(), d.countCases(), d.subtaskCases(), nonJSONCases(),
	} {
		for _, r := range list {
			all = append(all, r.toReplyCase())
		}
	}
	all = append(all, d.transportCases()...)
	return all
}

// textCase is a ReplyCase with a text.
type textCase struct {
	name, text string
	want       string
	or         []string
	intent     string // if not the default
}

func (r textCase) toReplyCase() ReplyCase {
	s := ReplyCase{Name: r.name, Behaviour: Text(r.text), WantReason: r.want, WantAlso: slices.Clone(r.or), WantIntent: r.intent}
	if s.WantIntent == "" && s.Accepts("") {
		s.WantIntent = ValidIntent
	}
	return s
}

// transportCases are valid replies in unusual responses, and failed responses.
func (d replyDraft) transportCases() []ReplyCase {
	valid := d.String()
	taken := func(name string, b Behaviour) ReplyCase {
		return ReplyCase{Name: name, Behaviour: b, WantIntent: ValidIntent}
	}
	all := []ReplyCase{
		taken("thoughts beside a valid text", Thoughts("The user wants a review. {\"intent\":\"made_up\"}", valid)),
		taken("valid text in parts", Parts(valid[:7], valid[7:40], valid[40:])),
		{Name: "MAX_TOKENS, truncated", Behaviour: CutOff(valid[:len(valid)/2]), WantReason: llm.ReasonMaxTokens},
		{Name: "MAX_TOKENS, empty", Behaviour: CutOff(""), WantReason: llm.ReasonMaxTokens},
		{Name: "MAX_TOKENS, only thoughts", Behaviour: CutOffWhileThinking(), WantReason: llm.ReasonMaxTokens},
		{Name: "MAX_TOKENS, complete", Behaviour: CutOff(valid), WantReason: llm.ReasonMaxTokens, WantAlso: []string{""}, WantIntent: ValidIntent},
	}
	for _, f := range providerFailures() {
		all = append(all, ReplyCase{Name: f.name, Behaviour: f.does, WantReason: f.want[0], WantAlso: f.want[1:]})
	}
	for _, header := range []string{"1", "30", "Wed, 21 Oct 2015 07:28:00 GMT"} {
		all = append(all, ReplyCase{Name: "429, Retry-After " + header, Behaviour: RateLimited(header), WantReason: llm.ReasonRateLimited})
	}
	for _, f := range endlessReplies() {
		all = append(all, ReplyCase{Name: f.name, Behaviour: f.does, WantReason: f.want[0], Endless: true})
	}
	return all
}

// Content of ValidReply.
const (
	ValidIntent = "code_review"
	validDomain = "python"
)

// ValidReply returns a valid classification.
func ValidReply() string { return validDraft().String() }

// replyDraft is a classification with arbitrary JSON for its members. Replacing
// one creates an invalid reply.
type replyDraft struct{ intent, domains, subtasks, confidence string }

func validDraft() replyDraft {
	intent, domains := quoteName(ValidIntent), "["+quoteName(validDomain)+"]"
	return replyDraft{
		intent: intent, domains: domains, confidence: "0.93",
		subtasks: `[{"title":"Review error handling","reason":"asked for","intent":` + intent + `,"domains":` + domains + `}]`,
	}
}

// String returns the JSON with all members that are not empty.
func (d replyDraft) String() string {
	var members []string
	for _, m := range [][2]string{{"intent", d.intent}, {"domains", d.domains}, {"subtasks", d.subtasks}, {"confidence", d.confidence}} {
		if m[1] != "" {
			members = append(members, `"`+m[0]+`":`+m[1])
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// quoteName quotes a name that needs no escapes.
func quoteName(s string) string { return `"` + s + `"` }

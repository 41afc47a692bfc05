package fakellm

import (
	"slices"

	"github.com/caprouter/caprouter/internal/llm"
)

// ReplyCase is something a model answers a classification with, and what is to
// come of it when it answers every call so, the repair's included.
type ReplyCase struct {
	Name      string
	Behaviour Behaviour
	// WantReason is the reason code of the classification; "" = the reply is
	// taken as it is.
	WantReason string
	// Or lists reasons that are right as well: what a strict reader refuses and
	// a forgiving one may take.
	Or []string
	// WantIntent is the intent of a reply that is taken.
	WantIntent string
	// Endless marks a reply that only the caller's deadline ends.
	Endless bool
}

// Right reports whether a classification may have the reason.
func (s *ReplyCase) Right(reason string) bool {
	return reason == s.WantReason || slices.Contains(s.Or, reason)
}

// ReplyCases returns all of them, for a registry with the intent and the domain of
// Valid.
func ReplyCases() []ReplyCase { return ReplyCasesFor(ValidIntent, ValidDomain) }

// ReplyCasesFor returns all of them for a registry with that intent and domain. It
// must not know an intent made_up or a domain made_up.
func ReplyCasesFor(intent, domain string) []ReplyCase {
	d := defaults(intent, domain)
	var all []ReplyCase
	for _, list := range [][]row{
		d.taken(), d.wrapped(), d.syntax(), d.names(), d.types(), d.vocabulary(), d.numbers(), d.counts(), d.subtaskSlips(), otherText(),
	} {
		for _, r := range list {
			all = append(all, r.scripted(intent))
		}
	}
	all = append(all, d.transport(intent)...)
	return all
}

// row is a Scripted whose reply is a text.
type row struct {
	name, text string
	want       string
	or         []string
	intent     string // where it is not that of the registry
}

func (r row) scripted(intent string) ReplyCase {
	s := ReplyCase{Name: r.name, Behaviour: Text(r.text), WantReason: r.want, Or: slices.Clone(r.or), WantIntent: r.intent}
	if s.WantIntent == "" && s.Right("") {
		s.WantIntent = intent
	}
	return s
}

// transport is what happens to a classification that is fine, or never comes.
func (d draft) transport(intent string) []ReplyCase {
	valid := d.String()
	taken := func(name string, b Behaviour) ReplyCase {
		return ReplyCase{Name: name, Behaviour: b, WantIntent: intent}
	}
	all := []ReplyCase{
		taken("thoughts beside a valid text", Thoughts("The user wants a review. {\"intent\":\"made_up\"}", valid)),
		taken("valid text in parts", Parts(valid[:7], valid[7:40], valid[40:])),
		{Name: "MAX_TOKENS, cut", Behaviour: CutOff(valid[:len(valid)/2]), WantReason: llm.ReasonMaxTokens},
		{Name: "MAX_TOKENS, empty", Behaviour: CutOff(""), WantReason: llm.ReasonMaxTokens},
		{Name: "MAX_TOKENS, all of it thoughts", Behaviour: ThoughtAway(), WantReason: llm.ReasonMaxTokens},
		{Name: "MAX_TOKENS, whole by chance", Behaviour: CutOff(valid), WantReason: llm.ReasonMaxTokens, Or: []string{""}, WantIntent: intent},
	}
	for _, f := range providerFailures() {
		all = append(all, ReplyCase{Name: f.name, Behaviour: f.does, WantReason: f.want[0], Or: f.want[1:]})
	}
	for _, header := range []string{"1", "30", "Wed, 21 Oct 2015 07:28:00 GMT"} {
		all = append(all, ReplyCase{Name: "429, Retry-After " + header, Behaviour: RateLimited(header), WantReason: llm.ReasonRateLimited})
	}
	for _, f := range endless() {
		all = append(all, ReplyCase{Name: f.name, Behaviour: f.does, WantReason: f.want[0], Endless: true})
	}
	return all
}

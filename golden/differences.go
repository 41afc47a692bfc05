package golden

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/routediff"
)

// actualOf extracts the actual outcome from the response to a dry run.
func actualOf(resp *contract.Response) Actual {
	d := resp.Decision
	clf := &d.Classification
	got := Actual{
		Outcome: Dispatch, Agents: d.Chosen, Intent: clf.Intent, Domains: clf.Domains,
		Confidence: clf.Confidence, Source: string(clf.Source), Reason: clf.Reason,
	}
	switch {
	case resp.Status == contract.StatusClarify:
		got.Outcome = Clarify
		got.Reason = cmp.Or(got.Reason, resp.Data.Because)
	case d.FallbackUsed != nil:
		got.Outcome = Outcome("fallback_" + strings.ToLower(*d.FallbackUsed))
		if u := resp.Data.Unsupported; u != nil {
			got.Reason = cmp.Or(got.Reason, u.Reason)
		}
	}
	return got
}

// diffExpected returns a sentence for each difference from the expectation.
func diffExpected(c *Case, got *Actual) []string {
	var why []string
	miss := func(what, got, want string) {
		why = append(why, fmt.Sprintf("%s: got %s, want %s", what, got, want))
	}
	e := &c.Expect
	if !e.Outcome.includes(got.Outcome) {
		text := string(got.Outcome)
		if got.Reason != "" {
			text += " (" + got.Reason + ")"
		}
		miss("outcome", text, string(e.Outcome))
	}
	if !agentsMatch(c, got.Agents) {
		want := []string{routediff.FormatSet(e.Agents)}
		for _, set := range c.Alternates {
			want = append(want, routediff.FormatSet(set))
		}
		miss("agents", routediff.FormatSet(got.Agents), strings.Join(want, " or "))
	}
	if e.Intent != "" && e.Intent != got.Intent {
		miss("intent", got.Intent, e.Intent)
	}
	if e.Domains != nil && !routediff.SameSet(e.Domains, got.Domains) {
		miss("domains", routediff.FormatSet(got.Domains), routediff.FormatSet(e.Domains))
	}
	if e.Reason != "" && e.Reason != got.Reason {
		miss("reason", cmp.Or(got.Reason, "none"), e.Reason)
	}
	return why
}

// includes reports whether the expected outcome o includes got.
func (o Outcome) includes(got Outcome) bool {
	switch o {
	case "", got:
		return true
	case AnyFallback:
		return got == FallbackA || got == FallbackB || got == FallbackC
	}
	return false
}

// agentsMatch reports whether the chosen agents are the expected ones or an
// alternate set.
func agentsMatch(c *Case, got []string) bool {
	if c.Expect.Agents == nil || routediff.SameSet(c.Expect.Agents, got) {
		return true
	}
	return slices.ContainsFunc(c.Alternates, func(set []string) bool { return routediff.SameSet(set, got) })
}

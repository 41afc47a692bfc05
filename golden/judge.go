package golden

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// gotOf reads the outcome off a response to a dry run.
func gotOf(resp *contract.Response) Actual {
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

// differences returns a sentence for each thing that is not as the case wants it.
func differences(c *Case, got *Actual) []string {
	var why []string
	miss := func(what, got, want string) {
		why = append(why, fmt.Sprintf("%s: got %s, want %s", what, got, want))
	}
	e := &c.Expect
	if !e.Outcome.covers(got.Outcome) {
		text := string(got.Outcome)
		if got.Reason != "" {
			text += " (" + got.Reason + ")"
		}
		miss("outcome", text, string(e.Outcome))
	}
	if !agentsFit(c, got.Agents) {
		want := []string{setText(e.Agents)}
		for _, set := range c.Alternates {
			want = append(want, setText(set))
		}
		miss("agents", setText(got.Agents), strings.Join(want, " or "))
	}
	if e.Intent != "" && e.Intent != got.Intent {
		miss("intent", got.Intent, e.Intent)
	}
	if e.Domains != nil && !sameSet(e.Domains, got.Domains) {
		miss("domains", setText(got.Domains), setText(e.Domains))
	}
	if e.Reason != "" && e.Reason != got.Reason {
		miss("reason", cmp.Or(got.Reason, "none"), e.Reason)
	}
	return why
}

// covers reports whether the outcome, as it is wanted, is met by another.
func (o Outcome) covers(got Outcome) bool {
	switch o {
	case "", got:
		return true
	case AnyFallback:
		return got == FallbackA || got == FallbackB || got == FallbackC
	}
	return false
}

// agentsFit reports whether the chosen agents are the expected ones or an
// alternate to them.
func agentsFit(c *Case, got []string) bool {
	if c.Expect.Agents == nil || sameSet(c.Expect.Agents, got) {
		return true
	}
	return slices.ContainsFunc(c.Alternates, func(set []string) bool { return sameSet(set, got) })
}

func sameSet(a, b []string) bool { return slices.Equal(sorted(a), sorted(b)) }

func sorted(set []string) []string {
	set = slices.Clone(set)
	slices.Sort(set)
	return slices.Compact(set)
}

// setText shows a set: "a + b", "none".
func setText(set []string) string { return cmp.Or(strings.Join(sorted(set), " + "), "none") }

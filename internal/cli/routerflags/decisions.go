package routerflags

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
)

// DecisionFilter selects entries of the decision log.
type DecisionFilter struct {
	Below                                    float64
	agent, Intent, source, Fallback, outcome string
	Feedback                                 string
	Since                                    string
	Limit                                    int
}

// Register adds the flags.
func (f *DecisionFilter) Register(cmd *cobra.Command) {
	flags := cmd.Flags()
	cmdline.AddShareFlag(cmd, &f.Below, "below", "only with a lower confidence than `NUMBER`, e.g. 0.7")
	flags.StringVar(&f.agent, "agent", "", "only those for which the agent with this `ID` was chosen or tried")
	flags.StringVar(&f.Intent, "intent", "", "only those read as `INTENT`, or unknown")
	flags.StringVar(&f.source, "source", "", "only classifications of this `SOURCE`: "+strings.Join(sourceNames(), ", "))
	flags.StringVar(&f.Fallback, "fallback", "", "only those that a fallback policy answered, or the `POLICY` A, B or C")
	flags.StringVar(&f.outcome, "outcome", "", "only those that ended in this `STATUS`, e.g. clarification_required")
	flags.StringVar(&f.Feedback, "feedback", "", "only those with feedback of this `VERDICT`: correct or misroute")
	flags.StringVar(&f.Since, "since", "7d", "only those from this `TIME` on: 12h or 7d ago, or 2026-01-02T15:04:05Z")
	f.Limit = 100
	cmdline.AddCountFlag(cmd, &f.Limit, "limit", 1, 0, "maximum number `N` of decisions")
	flags.Lookup("fallback").NoOptDefVal = contract.AnyFallback
	cmdline.MustSucceed(cmd.RegisterFlagCompletionFunc("source", cobra.FixedCompletions(sourceNames(), cobra.ShellCompDirectiveNoFileComp)))
}

// Selects reports whether the filter restricts the decisions, except by time and number.
func (f *DecisionFilter) Selects() bool {
	return f.Below != 0 || f.agent != "" || f.Intent != "" || f.source != "" || f.Fallback != "" || f.outcome != "" || f.Feedback != ""
}

func sourceNames() []string {
	return []string{
		string(contract.SourceLLM), string(contract.SourceLexical), string(contract.SourceCache), string(contract.SourcePinned),
	}
}

// NewQuery checks the flags. The limit is that of the list, not of a page.
func (f *DecisionFilter) NewQuery(cmd *cobra.Command) (contract.DecisionQuery, error) {
	query := contract.DecisionQuery{
		Below: f.Below, Agent: f.agent, Intent: f.Intent, Source: contract.Source(f.source),
		Fallback: f.Fallback, Outcome: contract.Status(f.outcome), Feedback: contract.Verdict(f.Feedback), Limit: f.Limit,
	}
	var err error
	query.Since, err = ParseSince(f.Since, time.Now())
	switch {
	case err != nil:
		return query, cmdline.UsageErrorf(cmd, "--since %w", err)
	case f.agent != "" && !contract.ValidAgentID(f.agent):
		return query, cmdline.UsageErrorf(cmd, "--agent %q is not the id of an agent", f.agent)
	case f.source != "" && !slices.Contains(sourceNames(), f.source):
		return query, cmdline.UsageErrorf(cmd, "--source is %s, not %q", strings.Join(sourceNames(), ", "), f.source)
	case f.Fallback != "" && !slices.Contains([]string{contract.AnyFallback, "A", "B", "C"}, f.Fallback):
		return query, cmdline.UsageErrorf(cmd, "--fallback takes no value, or =A, =B or =C, not %q", f.Fallback)
	case f.Feedback != "" && !contract.ValidVerdict(query.Feedback):
		return query, cmdline.UsageErrorf(cmd, "--feedback is correct or misroute, not %q", f.Feedback)
	case f.outcome != "" && !query.Outcome.Terminal():
		return query, cmdline.UsageErrorf(cmd, "--outcome is the status of a request that has ended, e.g. completed, not %q", f.outcome)
	}
	return query, nil
}

// ParseSince returns the time that the text specifies: how long ago, or when.
func ParseSince(text string, now time.Time) (time.Time, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("is 12h, 7d, 2026-01-02 or 2026-01-02T15:04:05Z, not %q", text)
}

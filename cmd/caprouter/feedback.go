package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/explain"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/teach"
	"github.com/caprouter/caprouter/internal/cli/terminal"
)

func newFeedbackCommand() *cobra.Command {
	var flags routerflags.Server
	var correct, misroute bool
	var body contract.FeedbackRequest
	cmd := &cobra.Command{
		Use:   "feedback REQUEST_ID --correct | --misroute",
		Short: "Report whether a request went to the right agents",
		Long: "Report whether a request went to the right agents. Your second feedback on a request replaces the first.\n" +
			"`caprouter decisions --feedback misroute` lists the requests that went to wrong ones, and `caprouter teach`\n" +
			"corrects their readings.",
		Example: `  caprouter feedback 0198c0de-0000-7000-8000-000000000001 --correct
  caprouter feedback 0198c0de-0000-7000-8000-000000000001 --misroute --expect quality_agent
  caprouter feedback 0198c0de-0000-7000-8000-000000000001 --misroute --expect none`,
		Args: cmdline.ArgsBetween("the id of a request", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case correct == misroute:
				return cmdline.UsageErrorf(cmd, "give either --correct or --misroute")
			case correct && len(body.ExpectedAgents) > 0:
				return cmdline.UsageErrorf(cmd, "--expect needs --misroute")
			case body.ExpectedIntent != "" && (len(body.ExpectedAgents) != 1 || body.ExpectedAgents[0] == teach.NoAgent):
				return cmdline.UsageErrorf(cmd, "--expect-intent needs one agent in --expect: it is an intent of that agent")
			case len(body.ExpectedAgents) > 1 && slices.Contains(body.ExpectedAgents, teach.NoAgent):
				return cmdline.UsageErrorf(cmd, "--expect none stands alone, without agents")
			}
			if slices.Contains(body.ExpectedAgents, teach.NoAgent) {
				body.ExpectedAgents, body.ExpectedNone = nil, true
			}
			body.Verdict = contract.VerdictCorrect
			if misroute {
				body.Verdict = contract.VerdictMisroute
			}
			c, err := flags.NewClient(cmd)
			if err != nil {
				return err
			}
			var stored contract.Feedback
			if err := c.Post(cmd.Context(), c.ResourceURL("/api/v1/requests", args[0], "feedback"), body, &stored); err != nil {
				return err
			}
			return cmdline.PrintOutput(cmd, flags.AsJSON, stored, func(out io.Writer) error {
				_, err := fmt.Fprintf(out, "stored feedback on %s: %s\n", terminal.OneLine(args[0]), explain.FormatVerdict(&stored))
				return err
			})
		},
	}
	flags.Register(cmd)
	cmdline.AddJSONFlag(cmd, &flags.AsJSON)
	cmd.Flags().BoolVar(&correct, "correct", false, "the chosen agents were right")
	cmd.Flags().BoolVar(&misroute, "misroute", false, "the chosen agents were wrong, or none was chosen although one is right")
	cmd.Flags().StringSliceVar(&body.ExpectedAgents, "expect", nil, "`AGENT` that is right (repeatable), or none if no agent should get the request")
	cmd.Flags().StringVar(&body.ExpectedIntent, "expect-intent", "", "`INTENT` of the agent of --expect that is right")
	cmd.Flags().StringVar(&body.Comment, "comment", "", "`TEXT` for readers, stored masked")
	return cmd
}

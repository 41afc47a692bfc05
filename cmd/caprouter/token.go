package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/auth/issuance"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
)

// tokenFlags are the flags of commands that mint tokens.
type tokenFlags struct {
	routerflags.Config
	ttl time.Duration
}

func (f *tokenFlags) register(cmd *cobra.Command) {
	f.Register(cmd, false)
	f.ttl = time.Hour
	cmdline.AddDurationFlag(cmd, &f.ttl, "ttl", time.Second, 24*time.Hour, "lifetime `TIME` of the token, at most 24h")
}

// printToken prints only the token on stdout.
func (f *tokenFlags) printToken(cmd *cobra.Command, g app.TokenGrant) error {
	g.TTL = f.ttl
	cfg, err := f.LoadConfig()
	if err != nil {
		return err
	}
	token, err := app.MintCallerToken(cfg, g)
	if scope, ok := errors.AsType[*app.ScopeError](err); ok {
		return cmdline.UsageErrorf(cmd, "%w", scope)
	}
	if agent, ok := errors.AsType[*app.AgentError](err); ok {
		return cmdline.UsageErrorf(cmd, "%w", agent)
	}
	if tool, ok := errors.AsType[*app.ToolError](err); ok {
		return cmdline.UsageErrorf(cmd, "%w", tool)
	}
	if claim, ok := errors.AsType[*issuance.ClaimError](err); ok {
		if key, ok := nameConfigKey(claim.Claim); ok {
			return fmt.Errorf("%s: %w", key, claim)
		}
		return cmdline.UsageErrorf(cmd, "%w", claim)
	}
	if err != nil {
		return err
	}
	if !cfg.RequiresTokens() {
		fmt.Fprintln(cmd.ErrOrStderr(), "auth.mode is none: the router looks at no token; set it to jwt")
	}
	missing, err := app.FindMissingScopes(&cfg, g.Scopes)
	if err != nil {
		return err
	}
	for _, m := range missing {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s requires %s, which the token does not have: add --scope %q\n",
			m.AgentID, strings.Join(m.Scopes, " "), formatSufficientScopes(g.Scopes, missing))
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), token)
	return err
}

// formatSufficientScopes returns the value of --scope for a token that can use all agents
// that it names. It contains the present scopes, because --scope replaces the default ones;
// those of agents have a flag of their own.
func formatSufficientScopes(scopes []string, missing []app.MissingScopes) string {
	isAgent := func(s string) bool { return strings.HasPrefix(s, contract.ScopeAgentPrefix) }
	list := slices.DeleteFunc(slices.Clone(scopes), isAgent)
	for _, m := range missing {
		list = append(list, m.Scopes...)
	}
	return strings.Join(removeDuplicates(list), " ")
}

// nameConfigKey returns the configuration key of a claim that has no flag.
func nameConfigKey(claim string) (key string, ok bool) {
	key, ok = map[string]string{"iss": "auth.issuer", "aud": "auth.audience"}[claim]
	return key, ok
}

// defaultScopes allow a caller to route requests and to read their results.
func defaultScopes() []string {
	return []string{contract.ScopeRouteSubmit, contract.ScopeRouteRead, contract.ScopeAgentsRead}
}

func newTokenCommand() *cobra.Command {
	var flags tokenFlags
	var grant app.TokenGrant
	var scopes, agents []string
	cmd := &cobra.Command{
		Use:   "token --sub NAME",
		Short: "Issue a token for a caller",
		Long: "Issue a token for a caller with the key of the data directory, and print it. The router may be running.\n" +
			"The caller can use only the agents named with --agent.\n\n" +
			"Without --scope the token holds " + strings.Join(defaultScopes(), ", ") + ". The other scopes:\n\n" +
			scopeHelp(),
		Example: `  export TOKEN=$(caprouter token --sub alice --agent '*')
  caprouter token --sub ci --scope "route:submit route:read" --agent quality_agent --ttl 15m
  caprouter token --sub ops --scope "route:read agents:read tickets admin" --data-dir /var/lib/caprouter`,
		Args: cmdline.ArgsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if grant.Subject == "" {
				return cmdline.UsageErrorf(cmd, "token needs --sub NAME, the name of the caller")
			}
			grant.Scopes = defaultScopes()
			if cmd.Flags().Changed("scope") {
				grant.Scopes = strings.Fields(strings.Join(scopes, " "))
			}
			for _, id := range agents {
				if id != "*" && !contract.ValidAgentID(id) {
					return cmdline.UsageErrorf(cmd, "--agent is the id of an agent, or '*' for all, not %q", id)
				}
				grant.Scopes = append(grant.Scopes, contract.ScopeAgentPrefix+id)
			}
			grant.Scopes = removeDuplicates(grant.Scopes)
			return flags.printToken(cmd, grant)
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVar(&grant.Subject, "sub", "", "`NAME` of the caller (required)")
	cmd.Flags().StringArrayVar(&scopes, "scope", nil, "`SCOPES` of the token instead of the default ones, separated by spaces (repeatable)")
	cmd.Flags().StringArrayVar(&agents, "agent", nil, "`ID` of an agent that the caller may use, '*' for all (repeatable)")
	cmd.Flags().StringVar(&grant.Tenant, "tenant", "", "`NAME` of the tenant of the caller")
	cmdline.MustSucceed(cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions(contract.Scopes(), cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func removeDuplicates(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func scopeHelp() string {
	var b strings.Builder
	for _, s := range [][2]string{
		{contract.ScopeTickets, "read and close tickets"},
		{contract.ScopeAdmin, "read everything: the records of every tenant, and every agent;"},
		{"", "with route:submit also cancel and erase the requests of others"},
		{contract.ScopeAgentsRegister, "register the agent that --sub names: see caprouter agents token"},
		{contract.ScopeTasksWork, "pull tasks of that agent, and deliver results"},
		{contract.ScopeMCPRead, "list MCP servers and tools, and check registry files"},
		{contract.ScopeInvokePrefix + "ACTION", "call this tool, for example mcp:invoke:weather.query"},
		{contract.ScopeOrchestrate, "pursue goals with the tools that the token may call"},
		{contract.ScopeApprove, "see the orchestrations of the tenant, and decide about calls that wait"},
	} {
		fmt.Fprintf(&b, "  %-26s %s\n", s[0], s[1])
	}
	return b.String() + "\nand what agents of the registry require (requires.scopes)."
}

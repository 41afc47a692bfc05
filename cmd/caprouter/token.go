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
	"github.com/caprouter/caprouter/internal/auth"
)

// tokenFlags are the flags of the commands that make tokens.
type tokenFlags struct {
	configFlags
	ttl time.Duration
}

func (f *tokenFlags) register(cmd *cobra.Command) {
	f.configFlags.register(cmd, false)
	cmd.Flags().DurationVar(&f.ttl, "ttl", time.Hour, "`TIME` the token is good for, at most 24h")
}

// mint prints the token, and nothing else, on stdout.
func (f *tokenFlags) mint(cmd *cobra.Command, g app.TokenGrant) error {
	if f.ttl < time.Second || f.ttl > 24*time.Hour {
		return usagef(cmd, "--ttl is between 1s and 24h, not %s", f.ttl)
	}
	g.TTL = f.ttl
	cfg, err := f.load()
	if err != nil {
		return err
	}
	token, err := app.MintCallerToken(cfg, g)
	if scope, ok := errors.AsType[*app.ScopeError](err); ok {
		return usagef(cmd, "%w", scope)
	}
	if claim, ok := errors.AsType[*auth.ClaimError](err); ok {
		if key, ok := configuredClaim(claim.Claim); ok {
			return fmt.Errorf("%s: %w", key, claim)
		}
		return usagef(cmd, "%w", claim)
	}
	if err != nil {
		return err
	}
	if !cfg.RequiresTokens() {
		fmt.Fprintln(cmd.ErrOrStderr(), "auth.mode is none: the router looks at no token; set it to jwt")
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), token)
	return err
}

// configuredClaim names the key of the configuration that a claim comes from, and
// not from a flag.
func configuredClaim(claim string) (key string, ok bool) {
	key, ok = map[string]string{"iss": "auth.issuer", "aud": "auth.audience"}[claim]
	return key, ok
}

// defaultScopes are those of a caller who routes and looks at what came of it.
func defaultScopes() []string {
	return []string{contract.ScopeRouteSubmit, contract.ScopeRouteRead, contract.ScopeAgentsRead}
}

func newTokenCommand() *cobra.Command {
	var flags tokenFlags
	var grant app.TokenGrant
	var scopes, agents []string
	cmd := &cobra.Command{
		Use:   "token --sub NAME",
		Short: "Make a token with which a caller may come to the router",
		Long: "Make a token with which a caller may come to the router that has the data directory, and print it. The\n" +
			"router may be running. No agent gets work of the caller's but those named with --agent.\n\n" +
			"Without --scope the token holds " + strings.Join(defaultScopes(), ", ") + ". The other scopes:\n\n" +
			scopeHelp(),
		Example: `  export TOKEN=$(caprouter token --sub alice --agent '*')
  caprouter token --sub ci --scope "route:submit route:read" --agent quality_agent --ttl 15m
  caprouter token --sub ops --scope admin --scope tickets --data-dir /var/lib/caprouter`,
		Args: takes("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if grant.Subject == "" {
				return usagef(cmd, "token needs --sub NAME, whom it is for")
			}
			grant.Scopes = defaultScopes()
			if cmd.Flags().Changed("scope") {
				grant.Scopes = strings.Fields(strings.Join(scopes, " "))
			}
			for _, id := range agents {
				if id != "*" && !contract.ValidAgentID(id) {
					return usagef(cmd, "--agent is the id of an agent, or '*' for all, not %q", id)
				}
				grant.Scopes = append(grant.Scopes, contract.ScopeAgentPrefix+id)
			}
			grant.Scopes = distinct(grant.Scopes)
			return flags.mint(cmd, grant)
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVar(&grant.Subject, "sub", "", "`NAME` of the caller the token is for")
	cmd.Flags().StringArrayVar(&scopes, "scope", nil, "`SCOPES` the token holds, separated by spaces (may be repeated)")
	cmd.Flags().StringArrayVar(&agents, "agent", nil, "`ID` of an agent that may work for the caller, '*' for all (may be repeated)")
	cmd.Flags().StringVar(&grant.Tenant, "tenant", "", "`NAME` of the tenant the caller belongs to")
	must(cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions(contract.Scopes(), cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// distinct leaves out what was there before.
func distinct(list []string) []string {
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
		{contract.ScopeAdmin, "see the records of every tenant, and every agent;"},
		{"", "with route:submit also cancel and erase the requests of others"},
		{contract.ScopeAgentsRegister, "register the agent that --sub names: see caprouter agents token"},
		{contract.ScopeTasksWork, "deliver results of that agent"},
		{contract.ScopeMCPRead, "see plugins"},
		{contract.ScopeInvokePrefix + "PLUGIN.ACTION", "call one"},
		{contract.ScopeOrchestrate, "run plans"},
		{contract.ScopeApprove, "approve their steps"},
	} {
		fmt.Fprintf(&b, "  %-26s %s\n", s[0], s[1])
	}
	return b.String() + "\nand what agents of the registry require (requires.scopes)."
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/cli/explain"
	"github.com/caprouter/caprouter/internal/cli/restclient"
	"github.com/caprouter/caprouter/internal/cli/runreport"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/cli/ticketreport"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/demo"
	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/internal/run"
)

// routeAsync sends the first sample request asynchronously and follows its events.
func (d *demoRun) routeAsync(ctx context.Context, c *restclient.Client) error {
	step := demo.Steps(d.hasModel())[0]
	p := d.beginStep("An asynchronous request",
		"The first request again: the router stores it before it answers 202, continues it after a crash, and publishes its events.")
	step.Request.Options.Mode = contract.ModeAsync
	accepted, err := c.RouteRequest(ctx, &step.Request)
	if err != nil {
		return err
	}
	p.WriteField("status", string(accepted.Status)+": GET /api/v1/requests/"+accepted.RequestID, terminal.Plain)
	final, err := c.FollowEvents(ctx, accepted.RequestID, func(ev *contract.Event) { p.WriteField("event", formatEvent(ev), terminal.Plain) })
	if err != nil {
		return err
	}
	fmt.Fprint(d.out, p.String())
	if final.Status != step.Status {
		return d.reportDifference(&step, fmt.Sprintf("the status is %s, not %s", final.Status, step.Status))
	}
	fmt.Fprintln(d.out)
	return nil
}

// routeRegistered routes a request to an agent that registers itself meanwhile.
func (d *demoRun) routeRegistered(ctx context.Context, c *restclient.Client) (err error) {
	const prompt = "How many words are in this text: to be or not to be"
	p := d.beginStep("An agent registers itself",
		"word_counter is not declared in the registry file, which only grants it an intent and a domain. It registers, "+
			"the classifier learns its examples, it serves a request, and it leaves.")
	fmt.Fprint(d.out, p.String())
	before := registryInUse(ctx, c, prompt)
	agent := run.New(ctx)
	defer func() {
		agent.Stop(nil)
		err = errors.Join(err, agent.Wait())
	}()
	agent.Go("register the sample agent", func(ctx context.Context) error { return demo.RegisterSample(ctx, c.BaseURL()) })
	awaitRegistry(ctx, c, prompt, before)
	step := demo.Step{
		Title: "an agent registers itself", Status: contract.StatusCompleted,
		Request: contract.Request{Content: contract.Content{Prompt: prompt}, Metadata: contract.Metadata{Locale: "en"}},
	}
	resp, err := c.RouteRequest(ctx, &step.Request)
	if err != nil {
		return err
	}
	explain.PrintResponse(d.out, resp, explain.Options{Options: terminal.DetectOptions(d.out), Prompt: prompt, Base: c.BaseURL()})
	if resp.Status != step.Status {
		return d.reportDifference(&step, fmt.Sprintf("the status is %s, not %s", resp.Status, step.Status))
	}
	fmt.Fprintln(d.out)
	return nil
}

// registrationTimeout bounds how long the registered agent may take to be routed to.
const registrationTimeout = 10 * time.Second

// registryInUse returns the version of the registry with which the router routes the prompt.
// It returns the empty string if there is no decision.
func registryInUse(ctx context.Context, c *restclient.Client, prompt string) string {
	resp, err := c.RouteRequest(ctx, &contract.Request{Content: contract.Content{Prompt: prompt}, Options: contract.Options{DryRun: true}})
	if err != nil || resp.Decision == nil {
		return ""
	}
	return resp.Decision.RegistryVersion
}

// awaitRegistry waits until the router routes the prompt with another registry than before. If
// that takes too long, the request that follows shows what is wrong.
func awaitRegistry(ctx context.Context, c *restclient.Client, prompt, before string) {
	ctx, cancel := context.WithTimeout(ctx, registrationTimeout)
	defer cancel()
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for {
		if version := registryInUse(ctx, c, prompt); version != "" && version != before {
			return
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
	}
}

func formatEvent(ev *contract.Event) string {
	parts := []string{string(ev.Type)}
	switch {
	case ev.Decision != nil:
		parts = append(parts, strings.Join(ev.Decision.Chosen, ", "))
	case ev.Task != nil:
		parts = append(parts, ev.Task.AgentID, string(ev.Task.Status))
	case ev.Response != nil:
		parts = append(parts, string(ev.Response.Status))
	}
	return strings.Join(parts, " ")
}

// withRouter runs fn with a second router. It has no model, so that the outcome of the
// step does not depend on one.
func (d *demoRun) withRouter(ctx context.Context, cfg *config.Config, registry []byte, fn func(context.Context, *restclient.Client) error) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cfg.Classifier.Mode = classifier.ModeLexical
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server, err := d.startRouter(ctx, cfg, registry, listener, noEnvironment)
	if err != nil {
		return err
	}
	defer func() {
		stop()
		err = errors.Join(err, server.Wait())
	}()
	c, err := restclient.New("http://"+server.Addr(), "")
	if err != nil {
		return err
	}
	defer c.CloseIdleConnections()
	return fn(ctx, c)
}

// routeToTool routes a request to a tool of an MCP server, on a second router.
func (d *demoRun) routeToTool(ctx context.Context) error {
	p := d.beginStep("A tool of an MCP server",
		"weather_agent of a second registry is no program of its own: its entry names the tool weather.query of an MCP server, which the router starts, and where the argument comes from.")
	fmt.Fprint(d.out, p.String())
	tools := demo.Tools{Program: d.program, NodeModules: d.nodeModules}
	servers, err := tools.Servers()
	if err != nil {
		return err
	}
	cfg := d.newConfig("tools")
	cfg.MCP.File = filepath.Join(d.dir, "tools.json")
	if err := os.WriteFile(cfg.MCP.File, servers, 0o600); err != nil {
		return err
	}
	return d.withRouter(ctx, &cfg, tools.Registry(), func(ctx context.Context, c *restclient.Client) error {
		for _, req := range tools.Requests() {
			resp, err := c.RouteRequest(ctx, req)
			if err != nil {
				return err
			}
			explain.PrintResponse(d.out, resp, explain.Options{Options: terminal.DetectOptions(d.out), Prompt: req.Content.Prompt, Base: c.BaseURL()})
			if resp.Status != contract.StatusCompleted {
				return fmt.Errorf("the status is %s, not %s", resp.Status, contract.StatusCompleted)
			}
			fmt.Fprintln(d.out)
		}
		return d.pursueGoal(ctx, c)
	})
}

// pursueGoal executes a plan with the tools of the MCP servers.
func (d *demoRun) pursueGoal(ctx context.Context, c *restclient.Client) error {
	p := d.beginStep("A goal over several tools",
		"The router executes a plan with the servers weather and system: each call is judged by the policy, the second one gets the output of the first, and the outputs are verified.")
	fmt.Fprint(d.out, p.String())
	view := &runreport.EventPrinter{Out: d.out}
	result, err := c.StreamRun(ctx, demo.Goal(), view.Print)
	if err != nil {
		return err
	}
	if err := runreport.PrintResult(d.out, result); err != nil {
		return err
	}
	if result.Status != contract.OrchestrationDone {
		return fmt.Errorf("the status is %s, not %s", result.Status, contract.OrchestrationDone)
	}
	fmt.Fprintln(d.out)
	return nil
}

// unsupportedPrompts returns requests that no sample agent serves. The first two are
// similar.
func unsupportedPrompts() []string {
	return []string{
		"Book a flight to Lisbon for Monday",
		"Please book me a flight for Friday",
		"Translate the menu into French",
	}
}

// proposeAgents shows fallback policy C, which a registry sets, on a second router.
func (d *demoRun) proposeAgents(ctx context.Context) error {
	p := d.beginStep("Tickets for missing agents",
		"The registry of a second router sets fallback policy C: requests without an agent become tickets, and similar requests share one. Each ticket suggests an agent; caprouter tickets lists them.")
	const policy = "fallback: { policy: "
	registry := bytes.Replace(demo.Registry(nil), []byte(policy+"A }"), []byte(policy+"C }"), 1)
	cfg := d.newConfig("tickets")
	err := d.withRouter(ctx, &cfg, registry, func(ctx context.Context, c *restclient.Client) error {
		for _, prompt := range unsupportedPrompts() {
			resp, err := c.RouteRequest(ctx, &contract.Request{Content: contract.Content{Prompt: prompt}})
			if err != nil {
				return err
			}
			if resp.Data.Proposal == nil {
				return fmt.Errorf("%q: the status is %s, not %s", prompt, resp.Status, contract.StatusProposed)
			}
			ticket := "a new ticket"
			if resp.Data.Proposal.Joined {
				ticket = fmt.Sprintf("joins a ticket as request %d", resp.Data.Proposal.Count)
			}
			p.WriteField(string(resp.Status), prompt+": "+ticket, terminal.Plain)
		}
		list, err := c.ListTickets(ctx, string(contract.TicketOpen), len(unsupportedPrompts()))
		if err != nil {
			return err
		}
		p.WriteBlock("", len(terminal.Indent), strings.TrimSuffix(ticketreport.FormatTickets(list, terminal.Options{Width: p.Width - len(terminal.Indent)}), "\n"))
		return nil
	})
	fmt.Fprintln(d.out, p.String())
	return err
}

// accessCase is a caller of a router with authentication, and its expected outcome.
type accessCase struct {
	caller  string
	agents  []string // that it may use; nil without a token
	outcome string
}

func accessCases() []accessCase {
	return []accessCase{
		{"anonymous", nil, string(contract.CodeUnauthenticated)},
		{"alice", []string{"quality_agent", "rag_agent"}, string(contract.StatusUnsupported)},
		{"bob", []string{"*"}, string(contract.StatusAccepted)},
	}
}

// checkAccess shows the effect of callers' tokens on a second router.
func (d *demoRun) checkAccess(ctx context.Context) error {
	const prompt = "Do a cost analysis of our azure bill"
	p := d.beginStep("Access control",
		"A second router has auth.mode jwt. Three callers send the same request: without a token it is rejected, and a caller who may not use an agent cannot see that it exists.")
	p.WriteField("prompt", prompt, terminal.Plain)
	cfg := d.newConfig("access")
	cfg.Auth.Mode = "jwt"
	err := d.withRouter(ctx, &cfg, demo.Registry(nil), func(ctx context.Context, c *restclient.Client) error {
		for _, a := range accessCases() {
			token, err := mintDemoToken(cfg, a.caller, a.agents)
			if err != nil {
				return err
			}
			outcome, detail, err := decideWithFallbackB(ctx, c.WithToken(token), prompt)
			if err != nil {
				return err
			}
			if outcome != a.outcome {
				return fmt.Errorf("%s: the outcome is %s, not %s", a.caller, outcome, a.outcome)
			}
			p.WriteField(a.caller, outcome+": "+detail, terminal.Plain)
		}
		return nil
	})
	fmt.Fprintln(d.out, p.String())
	return err
}

// decideWithFallbackB returns the status or the error code of a dry run, and a description.
func decideWithFallbackB(ctx context.Context, c *restclient.Client, prompt string) (outcome, detail string, err error) {
	resp, err := c.RouteRequest(ctx, &contract.Request{
		Content: contract.Content{Prompt: prompt}, Options: contract.Options{DryRun: true, Fallback: new("B")},
	})
	if e, ok := errors.AsType[*contract.Error](err); ok {
		return string(e.Code), e.Message, nil
	}
	if err != nil {
		return "", "", err
	}
	detail = "intent " + resp.Decision.Classification.Intent
	if len(resp.Decision.Chosen) > 0 {
		return string(resp.Status), detail + ", goes to " + strings.Join(resp.Decision.Chosen, ", "), nil
	}
	return string(resp.Status), detail + ", " + plaintext.CountNoun(len(resp.Decision.Candidates), "candidate"), nil
}

// mintDemoToken returns a token for the agents, or "" without agents.
func mintDemoToken(cfg config.Config, caller string, agents []string) (string, error) {
	if agents == nil {
		return "", nil
	}
	scopes := []string{"route:submit"}
	for _, id := range agents {
		scopes = append(scopes, contract.ScopeAgentPrefix+id)
	}
	return app.MintCallerToken(cfg, app.TokenGrant{Subject: caller, Tenant: "acme", Scopes: scopes, TTL: time.Minute})
}

// verifyAuditLog verifies the audit log of the first router.
func (d *demoRun) verifyAuditLog(ctx context.Context) error {
	p := d.beginStep("Audit log",
		"Every decision was recorded before its tasks were dispatched, and the records form a hash chain. caprouter audit verify checks it while the router runs.")
	dataDir := filepath.Join(d.dir, dataDirName)
	signer, err := openAuditSigner(dataDir)
	if err != nil {
		return err
	}
	report, err := audit.Verify(ctx, audit.VerifyConfig{DataDir: dataDir, Signer: signer})
	if err != nil {
		return err
	}
	p.WriteField("audit log", fmt.Sprintf("%s, %s", plaintext.CountNoun(int(report.Records), "record"), plaintext.CountNoun(len(report.Problems), "problem")), terminal.Plain)
	fmt.Fprintln(d.out, p.String())
	if len(report.Problems) > 0 {
		return fmt.Errorf("the audit log: %s", report.Problems[0].Detail)
	}
	return nil
}

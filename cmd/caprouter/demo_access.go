package main

import (
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
	"github.com/caprouter/caprouter/internal/demo"
)

// guarded are callers of a router that asks for tokens, and what each gets for
// the same request.
func guarded() []struct {
	who    string
	agents []string // it may use; nil = it has no token
	want   string
} {
	return []struct {
		who    string
		agents []string
		want   string
	}{
		{"nobody", nil, string(contract.CodeUnauthenticated)},
		{"alice", []string{"quality_agent", "rag_agent"}, string(contract.StatusUnsupported)},
		{"bob", []string{"*"}, string(contract.StatusAccepted)},
	}
}

// guards shows what a caller's token decides: another router with the same
// agents takes tokens, for as long as this step takes.
func (d *demonstration) guards(ctx context.Context, dir string, number int) (err error) {
	const prompt = "Do a cost analysis of our azure bill"
	opts := printOptions(d.out, prompt)
	printStep(d.out, fmt.Sprintf("%d. Who may do what", number),
		"Another router has auth.mode jwt. The same request, by three callers: who has no token is not let in, and who may not use an agent does not learn that there is one.", opts)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cfg, server, err := d.startGuarded(ctx, dir)
	if err != nil {
		return err
	}
	defer func() {
		stop()
		err = errors.Join(err, server.Wait())
	}()
	c, err := newClient("http://"+server.Addr(), "")
	if err != nil {
		return err
	}
	defer c.http.CloseIdleConnections()
	p := newPage(opts)
	p.field("prompt", prompt, none)
	for _, caller := range guarded() {
		if c.token, err = demoToken(cfg, caller.who, caller.agents); err != nil {
			return err
		}
		got, how, err := c.asks(ctx, prompt)
		if err != nil {
			return err
		}
		if got != caller.want {
			return fmt.Errorf("%s gets %s, not %s", caller.who, got, caller.want)
		}
		p.field(caller.who, got+": "+how, none)
	}
	_, err = fmt.Fprintln(d.out, p.String())
	return err
}

// asks makes a dry run of the prompt, and says how it ends and who would get it.
func (c *client) asks(ctx context.Context, prompt string) (ends, how string, err error) {
	resp, err := c.route(ctx, &contract.Request{
		Content: contract.Content{Prompt: prompt}, Options: contract.Options{DryRun: true, Fallback: new("B")},
	})
	if e, ok := errors.AsType[*contract.Error](err); ok {
		return string(e.Code), e.Message, nil
	}
	if err != nil {
		return "", "", err
	}
	reads := "reads as " + resp.Decision.Classification.Intent
	if len(resp.Decision.Chosen) > 0 {
		return string(resp.Status), reads + ", goes to " + strings.Join(resp.Decision.Chosen, ", "), nil
	}
	return string(resp.Status), reads + ", " + count(len(resp.Decision.Candidates), "candidate"), nil
}

// demoToken makes a token for a caller who may use the agents, "" for one who may
// use none.
func demoToken(cfg app.Config, who string, agents []string) (string, error) {
	if agents == nil {
		return "", nil
	}
	scopes := []string{"route:submit"}
	for _, id := range agents {
		scopes = append(scopes, contract.ScopeAgentPrefix+id)
	}
	return app.MintCallerToken(cfg, app.TokenGrant{Subject: who, Tenant: "acme", Scopes: scopes, TTL: time.Minute})
}

// startGuarded starts the router of this step.
func (d *demonstration) startGuarded(ctx context.Context, dir string) (app.Config, *app.Server, error) {
	cfg := app.DefaultConfig()
	cfg.DataDir = filepath.Join(dir, "data-guarded")
	cfg.Registry.File = filepath.Join(dir, "guarded.yaml")
	cfg.Classifier.Mode = classifier.ModeLexical
	cfg.Telemetry.LogLevel = "warn"
	cfg.Auth.Mode = "jwt"
	if err := os.WriteFile(cfg.Registry.File, demo.Registry(nil), 0o600); err != nil {
		return cfg, nil, err
	}
	server, err := d.startBeside(ctx, &cfg)
	return cfg, server, err
}

// startBeside starts another router on a port of its own. It knows of no model,
// so that its step ends the same whatever one says.
func (d *demonstration) startBeside(ctx context.Context, cfg *app.Config) (*app.Server, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	cfg.Listen = listener.Addr().String()
	server, err := app.Start(ctx, *cfg, app.Options{
		LogOutput: d.log, Version: buildVersion(), Listener: listener,
		LookupEnv: func(string) (string, bool) { return "", false },
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return server, nil
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/demo"
)

// unmet are requests that no sample agent serves; the first two want the same.
func unmet() []string {
	return []string{
		"Book a flight to Lisbon for Monday",
		"Please book me a flight for Friday",
		"Translate the menu into French",
	}
}

// proposes shows policy C, which is a registry's to choose: a second router with
// the same agents has it, for as long as this step takes.
func (d *demonstration) proposes(ctx context.Context, dir string, number int) (err error) {
	opts := printOptions(d.out, "")
	printStep(d.out, fmt.Sprintf("%d. What is missing", number),
		"A second router has fallback policy C: what nobody can do is put on record, and similar requests share a ticket. Each suggests an agent; caprouter tickets shows them.", opts)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server, err := d.startProposing(ctx, dir)
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
	for _, prompt := range unmet() {
		resp, err := c.route(ctx, &contract.Request{Content: contract.Content{Prompt: prompt}})
		if err != nil {
			return err
		}
		if resp.Data.Proposal == nil {
			return fmt.Errorf("%q: the answer is %s, not %s", prompt, resp.Status, contract.StatusProposed)
		}
		what := "a new ticket"
		if resp.Data.Proposal.Joined {
			what = fmt.Sprintf("joins a ticket, as request %d", resp.Data.Proposal.Count)
		}
		p.field(string(resp.Status), prompt+": "+what, none)
	}
	list, err := c.tickets(ctx, string(contract.TicketOpen), len(unmet()))
	if err != nil {
		return err
	}
	var table bytes.Buffer
	if err := printTickets(&table, list); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		p.raw(indent, strings.TrimRight(line, "\n"))
	}
	_, err = fmt.Fprintln(d.out, p.String())
	return err
}

// startProposing starts the router of this step. It classifies by the embedded
// classifier, so that the step ends the same whatever a model says.
func (d *demonstration) startProposing(ctx context.Context, dir string) (*app.Server, error) {
	const policy = "fallback: { policy: "
	registry := bytes.Replace(demo.Registry(nil), []byte(policy+"A }"), []byte(policy+"C }"), 1)
	cfg := app.DefaultConfig()
	cfg.DataDir = filepath.Join(dir, "data-proposing")
	cfg.Registry.File = filepath.Join(dir, "proposing.yaml")
	cfg.Classifier.Mode = classifier.ModeLexical
	cfg.Telemetry.LogLevel = "warn"
	if err := os.WriteFile(cfg.Registry.File, registry, 0o600); err != nil {
		return nil, err
	}
	return d.startBeside(ctx, &cfg)
}

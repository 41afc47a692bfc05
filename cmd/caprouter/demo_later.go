package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/demo"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// unattended sends the first request again, to be answered later, and follows it.
func (d *demonstration) unattended(ctx context.Context, c *client, number int) error {
	step := demo.Steps(d.key != "")[0]
	opts := printOptions(d.out, step.Request.Content.Prompt)
	opts.base = c.base.String()
	printStep(d.out, fmt.Sprintf("%d. Nobody waits", number),
		"The first request again, asynchronously: it is on disk before the router says 202, goes on after a crash, and tells what happens to whoever asks.", opts)
	step.Request.Options.Mode = contract.ModeAsync
	accepted, err := c.route(ctx, &step.Request)
	if err != nil {
		return err
	}
	p := newPage(opts)
	p.field("status", string(accepted.Status)+": GET /api/v1/requests/"+accepted.RequestID, none)
	final, err := c.follow(ctx, accepted.RequestID, func(ev *contract.Event) { p.field("event", eventLine(ev), none) })
	if err != nil {
		return err
	}
	fmt.Fprint(d.out, p.String())
	if final.Status != step.Status {
		return d.differs(&step, fmt.Sprintf("the answer is %s, not %s", final.Status, step.Status))
	}
	fmt.Fprintln(d.out)
	return nil
}

// eventLine says an event in a few words.
func eventLine(ev *contract.Event) string {
	words := []string{string(ev.Type)}
	switch {
	case ev.Decision != nil:
		words = append(words, strings.Join(ev.Decision.Chosen, ", "))
	case ev.Task != nil:
		words = append(words, ev.Task.AgentID, string(ev.Task.Status))
	case ev.Response != nil:
		words = append(words, string(ev.Response.Status))
	}
	return strings.Join(words, " ")
}

// follow reads the events of a request until its end.
func (c *client) follow(ctx context.Context, id string, tell func(*contract.Event)) (*contract.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath("/api/v1/requests", id, "events").String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, rootCause(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("events of request %s: %s", id, resp.Status)
	}
	lines := bufio.NewScanner(io.LimitReader(resp.Body, maxAnswerBytes))
	lines.Buffer(nil, maxAnswerBytes)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var ev contract.Event
		if err := strictjson.UnmarshalAllowUnknown([]byte(data), &ev); err != nil {
			return nil, fmt.Errorf("events of request %s: %w", id, err)
		}
		tell(&ev)
		if ev.Type == contract.EventFinal {
			return ev.Response, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("events of request %s: no end came", id), lines.Err())
}

// verifies checks the audit log of what was done until now.
func (d *demonstration) verifies(ctx context.Context, dataDir string, number int) error {
	opts := printOptions(d.out, "")
	printStep(d.out, fmt.Sprintf("%d. On the record", number),
		"Every decision was written down before anything was dispatched, each record chained to the one before. caprouter audit verify checks the chain while the router runs.", opts)
	signer, err := trailSigner(dataDir)
	if err != nil {
		return err
	}
	report, err := audit.Verify(ctx, audit.VerifyConfig{DataDir: dataDir, Signer: signer})
	if err != nil {
		return err
	}
	p := newPage(opts)
	p.field("audit log", fmt.Sprintf("%s, %s", count(int(report.Records), "record"), count(len(report.Problems), "problem")), none)
	fmt.Fprintln(d.out, p.String())
	if len(report.Problems) > 0 {
		return fmt.Errorf("the audit log: %s", report.Problems[0].Detail)
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/test/internal/process"
	"github.com/caprouter/caprouter/test/internal/workload"
)

// script is one run of the driver: the steps and what was measured.
type script struct {
	*testbed
	probers    []*prober
	pause      time.Duration // after each step
	report     *workload.Report
	stopErrors []string

	out  io.Writer
	step string // that is run
}

const (
	suspendTime    = 10 * time.Second // of a replica
	balancerNotice = time.Second      // until the balancer sends nothing to a suspended replica
	takeoverLimit  = 30 * time.Second
	maxNamed       = 5 // open requests that a message names
)

// runScript runs all steps under load, then the checks.
func runScript(ctx context.Context, opts options, dir string, out io.Writer) (_ *workload.Report, err error) {
	t, err := newTestbed(ctx, opts, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	began := time.Now()
	s := &script{testbed: t, pause: 5 * time.Second, report: &workload.Report{}, out: out}
	rounds := opts.rounds
	if opts.short {
		s.pause, rounds = time.Second, 1
	}
	for i, r := range t.replicas {
		s.probers = append(s.probers, newProber(fmt.Sprintf("replica %d", i+1), t.ledger, r.Process.Addr()))
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(rounds+1)*opts.limit)
	defer cancel()
	if err = errors.Join(s.runRounds(ctx, rounds, opts.short), ctx.Err()); err == nil {
		err = s.finish(ctx)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(err, s.describeHang())
	}
	if err != nil {
		return nil, err
	}
	s.report.Title = fmt.Sprintf("%d replicas, %d NATS servers: %d rounds in %.0f s; seed %d",
		len(t.replicas), workload.ClusterServers, rounds, time.Since(began).Seconds(), opts.seed)
	return s.report, nil
}

// runRounds runs the steps under load.
func (s *script) runRounds(ctx context.Context, rounds int, short bool) (err error) {
	lives, over := context.WithCancel(ctx)
	defer over()
	jobs := []func(context.Context){
		func(context.Context) {
			defer over()
			for range rounds {
				err = errors.Join(err, s.runSteps(ctx, short))
			}
			s.step = "the load ends"
			s.checkRegistration(ctx)
		},
		func(ctx context.Context) { s.load.Run(ctx, lives) },
		func(ctx context.Context) { s.holdSession(ctx, lives) },
		func(ctx context.Context) { s.sendHeartbeats(ctx, lives) },
	}
	for _, p := range s.probers {
		jobs = append(jobs, func(ctx context.Context) { p.run(ctx, lives) })
	}
	run.ForEach(ctx, len(jobs), len(jobs), func(ctx context.Context, i int) { jobs[i](ctx) })
	return err
}

// describeHang returns what a script that did not end in time was doing. It ends the
// routers, which write their stacks to their logs.
func (s *script) describeHang() error {
	err := fmt.Errorf("the script did not end in time; the last step is %q; open are %s", s.step, nameRequests(s.ledger.OpenRequests()))
	for _, r := range s.replicas {
		err = errors.Join(err, r.End((*process.Process).DumpStacks))
	}
	return err
}

// nameRequests returns the number of requests, and the first ids.
func nameRequests(ids []string) string {
	return fmt.Sprintf("%d requests %v", len(ids), ids[:min(len(ids), maxNamed)])
}

// runSteps runs each step once. Its figures are the probes of each replica: answered of
// all, and the longest time without an answer.
func (s *script) runSteps(ctx context.Context, short bool) error {
	type step struct {
		name string
		run  func(ctx context.Context) error
	}
	steps := []step{
		{"nothing is disturbed", s.measureRegistration},
		{"replica 1 is killed", func(ctx context.Context) error { return s.killReplica(ctx, 0) }},
		{"the leader of the requests is killed", func(ctx context.Context) error { return s.killLeader(ctx, "KV_REQUESTS") }},
		{"both replicas are restarted", s.restartReplicas},
		{"replica 2 is suspended for 10 s", func(ctx context.Context) error { return s.suspendReplica(ctx, 1) }},
		{"a NATS server is restarted", s.restartServer},
	}
	if !short {
		steps = append(steps, step{"the leader of the audit log is killed", func(ctx context.Context) error { return s.killLeader(ctx, "AUDIT") }},
			step{"replica 2 is killed", func(ctx context.Context) error { return s.killReplica(ctx, 1) }})
	}
	for _, step := range steps {
		began := time.Now()
		s.step = step.name
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		resilience.Sleep(ctx, s.pause)
		var figures strings.Builder
		fmt.Fprintf(&figures, "%4.1f s", time.Since(began).Seconds())
		for _, p := range s.probers {
			fmt.Fprintf(&figures, "; %s: %s", p.replica, p.between(began, time.Now()))
		}
		s.addFigure(step.name, figures.String())
	}
	return ctx.Err()
}

// addFigure adds a figure to the report and prints it.
func (s *script) addFigure(what, value string) {
	s.report.AddFigure(what, "%s", value)
	fmt.Fprintf(s.out, "%s: %s\n", what, value)
}

// start starts a replica that was ended.
func (s *script) start(ctx context.Context, i int) error {
	err := s.replicas[i].Start(context.WithoutCancel(ctx)) // it runs until close, also for describeHang
	if err == nil {
		s.probers[i].setAddr(s.replicas[i].Process.Addr())
	}
	return err
}

// killReplica kills a replica and starts it after the other one has taken over its
// requests: those that are open at the kill have ended.
func (s *script) killReplica(ctx context.Context, i int) error {
	open := s.ledger.OpenRequests()
	killed := time.Now()
	if err := s.replicas[i].Kill(); err != nil {
		return err
	}
	var still []string
	ended := workload.AwaitCondition(ctx, takeoverLimit, func() bool {
		now := s.ledger.OpenRequests()
		still = slices.DeleteFunc(slices.Clone(open), func(id string) bool { return !slices.Contains(now, id) })
		return len(still) == 0
	})
	took := fmt.Sprintf("%.1f s", time.Since(killed).Seconds())
	if !ended {
		took = fmt.Sprintf("not within %s: %s", takeoverLimit, nameRequests(still))
	}
	s.addFigure(fmt.Sprintf("  until the %d requests that were open had ended", len(open)), took)
	return s.start(ctx, i)
}

// killLeader kills the server that leads a stream, and starts it again.
func (s *script) killLeader(ctx context.Context, stream string) error {
	i, err := s.cluster.StreamLeader(ctx, stream)
	if err != nil {
		return err
	}
	if err := s.cluster.Kill(i); err != nil {
		return err
	}
	resilience.Sleep(ctx, s.pause)
	return s.cluster.Start(ctx, i)
}

// restartReplicas shuts down one replica after the other, and starts it again.
func (s *script) restartReplicas(ctx context.Context) error {
	for i, r := range s.replicas {
		if err := r.Stop(ctx); err != nil {
			s.stopErrors = append(s.stopErrors, err.Error())
		}
		if err := s.start(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// suspendReplica stops a replica that does not notice it. The other one takes over its
// requests meanwhile.
func (s *script) suspendReplica(ctx context.Context, i int) error {
	p := s.replicas[i].Process
	if err := p.Pause(); err != nil {
		return err
	}
	resilience.Sleep(ctx, balancerNotice)
	s.routers.Remove(p.Addr())
	resilience.Sleep(ctx, suspendTime-balancerNotice)
	err := p.Continue()
	s.routers.Add(p.Addr())
	return err
}

// restartServer shuts down a server and starts it again.
func (s *script) restartServer(ctx context.Context) error {
	i, err := s.cluster.StreamLeader(ctx, "AUDIT")
	if err != nil {
		return err
	}
	i = (i + 1) % workload.ClusterServers // a follower
	if err := s.cluster.Stop(ctx, i); err != nil {
		return err
	}
	return s.cluster.Start(ctx, i)
}

// finish waits for the ends of all requests, and adds the checks to the report.
func (s *script) finish(ctx context.Context) error {
	began := time.Now()
	s.step = "all requests end"
	s.load.Finish(ctx)
	s.addFigure("until all requests had ended and were read again", fmt.Sprintf("%.1f s", time.Since(began).Seconds()))
	s.step = "the checks"
	s.load.FetchFromEach(ctx, s.replicas)
	for _, r := range s.replicas {
		if err := r.Stop(ctx); err != nil {
			s.stopErrors = append(s.stopErrors, err.Error())
		}
	}
	s.report.Checks = append(s.ledger.RunChecks(), workload.VerifyReplicas(ctx, s.replicas), workload.CheckResult{Name: "a graceful shutdown failed", Violations: s.stopErrors})
	s.ledger.AddFigures(s.report)
	return ctx.Err()
}

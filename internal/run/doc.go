// Package run starts goroutines. A [Group] owns the long-lived goroutines of a
// component; [ForEach] is a bounded fan-out that waits; [Ticks] is the loop of a
// goroutine that works at intervals. No other package contains a go statement, so that
// every goroutine has an owner that waits for it, a way to stop it, and a name in its
// error if it panics. Retries and logging are up to the caller.
//
// The states of a Group:
//
//	                 every fn returned nil
//	        ┌──────────────────────────────────────┐
//	        │                                      ▼
//	New ─▶ running ──▶ stopping ──────────────▶ ended
//	        │  ▲        ▲  context cancelled,   (Wait returned;
//	        └──┘        │  fn still running      Go has no effect)
//	     Go(name, fn)   │
//	                    └─ Stop(cause), first error or panic, parent done
//
// For example, with a graceful shutdown on a signal:
//
//	g := run.New(ctx)
//	g.Go("watch registry", watcher.Run)
//	g.Go("serve http", func(ctx context.Context) error { return srv.Serve(ctx, ln) })
//	g.Go("signals", func(ctx context.Context) error {
//		select {
//		case s := <-signals:
//			g.Stop(fmt.Errorf("received %s", s))
//		case <-ctx.Done():
//		}
//		return nil
//	})
//	return g.Wait() // nil after Stop, otherwise for example "watch registry: …"
package run

// Package run is where goroutines start. A Group owns the long-lived ones of a
// component, Each fans one piece of work out and waits. No other package
// writes a go statement, so every goroutine has an owner that waits for it, a
// way to stop it, and a name in the error when it panics. What a goroutine
// does, when it is retried, and whether it is logged is its caller's business.
//
// The life of a Group:
//
//	                 every fn returned nil
//	        ┌──────────────────────────────────────┐
//	        │                                      ▼
//	New ─▶ running ──▶ stopping ──────────────▶ ended
//	        │  ▲        ▲  context cancelled,   (Wait returned;
//	        └──┘        │  fn still returning    Go does nothing)
//	     Go(name, fn)   │
//	                    └─ Stop(cause) · first error or panic · parent done
//
// A component starts its goroutines and is stopped like this:
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
//	return g.Wait() // nil after a Stop; else "watch registry: …"
package run

// Package natsserver runs a NATS server with JetStream inside this process: the storage
// engine of an embedded store. The server has no listener, handles no signals, and writes
// its log to slog.
//
//	srv, err := natsserver.New(natsserver.Config{Dir: dir, Logger: logger, Failures: failures})
//	err = srv.Start(ctx)
//	conn, err := nats.Connect("", nats.InProcessServer(srv))
//
// A server whose storage has failed does not recover. It sends the reason to
// Config.Failures, or IsHealthy reports it, and its owner starts another one on the same
// files.
package natsserver

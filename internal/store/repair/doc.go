// Package repair finds damage in the files of the storage engine, and removes it. It knows
// the format in which the engine (NATS JetStream) stores messages, and does not use the
// engine.
//
//	found, err := files.RepairAtStart(ctx, false) // before the engine starts: ErrNeeded
//	streams, err := files.RepairAll(ctx, dryRun)  // the command "store repair"
//
// The engine detects some damage only when it reads a message, and discards intact messages
// with a damaged one. A repair removes only the records that cannot be read, and keeps the
// original of a file that it changes.
package repair

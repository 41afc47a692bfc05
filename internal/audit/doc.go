// Package audit is the audit log: an append-only hash chain of decisions, which are
// recorded before anything is dispatched, of outcomes, and of changes of the log itself.
// The package defines the format of the records, their chain, retention and
// erasure, and how tampering is detected. It does not interpret decisions and starts
// no work.
//
//	log, err := audit.Open(ctx, audit.Config{Log: stream, Signer: signer, HeadFile: path})
//	…
//	err = log.Append(ctx, audit.Record{Kind: audit.KindDecision, RequestID: id, Content: json})
//	// nil: the record is durable; dispatch. Otherwise nothing may be dispatched.
//
// One goroutine writes (group commit). It collects the waiting records and writes one
// message for all of them, so that one fsync serves many callers and a single caller
// does not wait:
//
//	Append ─┐             batch n, one message               head, signed
//	Append ─┼─▶ writer ─▶ ┌──────────────────────────┐  ─▶  ┌─────────────┐
//	Append ─┘             │ prev ─▶ e1 ─▶ e2 ─▶ e3 ──┼─┐    │ n, hash(e3) │
//	                      │         │     │     │    │ │    └─────────────┘
//	                      │       content … content  │ │    batch n+1
//	                      └──────────────────────────┘ └──▶ prev ─▶ …
//
// The hash of an entry covers the chain, the batch, the position, the hash of the
// entry before, the facts, and the hash of the content with a random nonce. Facts stay
// as long as the chain. A content can be removed, because it is stored beside its entry
// and no hash depends on its presence.
//
//	audit.<writer>               the batches, as first written
//	audit.<writer>.content       parts of contents over 400 KiB, right before their batch
//	audit.<writer>.restated.<n>  batch n without the erased contents
//	audit.<writer>.bare.<n>      batch n without any content
//
// To remove contents, the log first appends a record that announces it (erase: those of
// this request; expire: those up to this batch; evict: those of this tenant up to this
// batch), then writes the batch again under its number, then overwrites the messages that
// held the contents (evict: removes them). To trim the start of the chain, it appends a checkpoint with the last position that goes. Hence everything that
// is missing is either announced in the chain or reported by [Verify].
//
// The signed head is a file outside the log that records the end of the chain. It is
// written after the batch it names, at most every 50 ms, so it may be behind but never
// ahead. Verify walks back from it. Verify cannot detect that the few batches behind the
// newest head were cut off, or that both the log and the head were restored from an older
// copy.
package audit

// Package audit keeps the trail: what was decided before anything is dispatched,
// what became of it, and what happened to the trail itself. It owns the format of
// the records, the chain that binds them, who may change what afterwards, and how
// tampering is found. It does not know what a decision means, and it drives no
// work: it is written, and read.
//
//	trail, err := audit.Open(ctx, audit.Config{Log: log, Signer: signer, HeadFile: path})
//	…
//	err = trail.Append(ctx, audit.Record{Kind: audit.KindDecision, RequestID: id, Content: json})
//	// on disk: dispatch; else nothing may be dispatched
//
// One goroutine writes. It takes along whatever is waiting and writes one message
// for all, so that one fsync serves many callers and a lone one does not wait:
//
//	Append ─┐             batch n, one message               head, signed
//	Append ─┼─▶ writer ─▶ ┌──────────────────────────┐  ─▶  ┌─────────────┐
//	Append ─┘             │ prev ─▶ e1 ─▶ e2 ─▶ e3 ──┼─┐    │ n, hash(e3) │
//	                      │         │     │     │    │ │    └─────────────┘
//	                      │       content … content  │ │    batch n+1
//	                      └──────────────────────────┘ └──▶ prev ─▶ …
//
// Each entry's hash covers the chain, the batch, its position, the hash before it,
// its facts, and the hash of its content behind a random nonce. Facts stay for as
// long as the chain does. A content may go: it lies beside its entry, and no hash
// changes when it goes.
//
//	audit.<writer>               the batches, as they were written
//	audit.<writer>.content       parts of contents over 400 KiB, right before their batch
//	audit.<writer>.restated.<n>  batch n without the contents that were erased
//	audit.<writer>.bare.<n>      batch n without any
//
// To take contents away a record first says so (erase: of this request; expire: up
// to this batch), then the batch is written anew under its number, then what held
// the contents is overwritten. To take the beginning of the chain away a record
// (checkpoint) says up to where. So everything that is missing is either explained
// by the chain, or named by [Verify].
//
// The signed head lies outside the log and says how far the chain has come. It is
// written after the batch it names, at most every 50 ms: it may be behind, and
// never ahead. Verify walks back from it; what it cannot show is that the few
// batches behind the newest head were cut off, and that the log and the head were
// both put back to how they once were.
package audit

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
// batch), then writes the batch again under its number, then overwrites the messages
// that held the contents (evict: removes them). To trim the start of the chain, it
// appends a checkpoint with the last position that goes. Hence everything that is
// missing is either announced in the chain or reported by [Verify].
//
// Several replicas may use one stream. Each of them writes the chain of its name, and
// follows those of the others, so that lookups, lists and shares are about all chains:
//
//	replica a ─▶ audit.a ─┬─▶ follower of b ─▶ indexes of b
//	replica b ─▶ audit.b ─┴─▶ follower of a ─▶ indexes of a
//
// A replica also removes contents from the chains of others, which may be down: an erased
// request may be in any of them, the oldest contents and records go first when the log is
// full, and a chain that exceeds its retention by two hours has no writer any more. It
// announces the removal in its own chain, and stores a head that covers the record before
// it begins, because [VerifyReplicas] accepts such an announcement only from the signed part
// of a chain. A batch is rewritten only if its newest copy is the one that was read, so
// that replicas which remove different contents of a batch at the same time keep both
// removals. Copies carry the sequence of the first message, which is the order of lists.
//
// The requests that a replica leaves behind are ended by [Log.CloseChain]: one of the
// others appends their outcomes to the chain of that replica, behind the end that it has
// read. Only one process can do this, and the writer itself is fenced by it.
//
// The signed head is a file outside the log that records the end of the chain. It is
// written after the batch it names, at most every 50 ms, so it may be behind but never
// ahead. Verify walks back from it. Verify cannot detect that the few batches behind the
// newest head were cut off, or that both the log and the head were restored from an older
// copy. In a store with several replicas the head of each chain is in the bucket HEADS, too,
// at most a second old, and names the other chains.
package audit

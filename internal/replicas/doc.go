// Package replicas is the membership of the processes that share a store: which of them
// are live, and with which public keys they sign.
//
//	m, err := replicas.Open(ctx, replicas.Config{Store: s, Name: "r-k3v9x2qa", Owner: id})
//	m.IsLive(record.Owner)         // false: its open requests may be taken over
//	m.OnGone(router.NoticeGone)    // called when an owner is gone
//	err = m.Close(ctx)             // the others take over at once
//
// Each replica has a name, which it keeps over restarts, and each process an owner id.
// The bucket REPLICAS has one row per name, which the process writes again every 700 ms
// (a beat), and then reads all rows:
//
//	(new) ─▶ live ── no beat for 3 s ──▶ gone ── a beat ──▶ live
//	          │  └── another process has the name ─▶ gone (the owner)
//	          └───── Close ────────────────────────▶ gone
//
// Three seconds are counted by the clock of the observer, and only while its own beats
// are acknowledged: while the store is not available, no time counts. A replica that is presumed
// gone may still run, so every change of what an owner has must compare revisions.
//
// Rows of replicas that are gone stay for an hour, so that what they signed can be
// verified. An embedded store has one process, which Alone describes without a bucket.
package replicas

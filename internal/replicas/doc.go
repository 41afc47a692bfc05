// Package replicas is the membership of the processes that share a store: which of them
// are live, and with which public keys they sign.
//
//	m, err := replicas.Open(ctx, replicas.Config{Store: s, Name: "r-k3v9x2qa", Owner: id})
//	m.IsLive(record.Owner)                 // false: its open requests may be taken over
//	m.OnMemberDead(router.TriggerTakeOver) // called when an owner is dead
//	err = m.Close(ctx)                     // the others take over at once
//
// Each replica has a name, which it keeps over restarts, and each process an owner id.
// The bucket REPLICAS has one row per name, which the process writes again every 700 ms
// (a beat), and then reads all rows:
//
//	(new) ─▶ live ── no beat for 3 s ──▶ dead ── a beat ──▶ live
//	          │  └── another process has the name ─▶ dead (the owner)
//	          └───── Close ────────────────────────▶ dead
//
// Three seconds are counted by the clock of the observer, and only while its own beats
// are acknowledged: while the store is not available, no time counts. A dead replica may
// still run, so every change of what an owner has must compare revisions.
//
// Rows of replicas that are dead stay for an hour, so that what they signed can be
// verified. An embedded store has one process, which Alone describes without a bucket.
package replicas

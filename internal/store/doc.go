// Package store is the durable storage of the process. Its engine is NATS JetStream,
// which no package outside of this directory imports: they use tables, buckets, logs and
// errors. The packages in it run the engine (natsserver), repair its files (repair), and
// lock the directory (dirlock).
//
//	Table   typed rows, changed by optimistic concurrency control, with TTL and watch
//	Bucket  keys with one value each, changed by comparing revisions
//	Log     messages that are appended, read in order and followed
//
// The engine runs inside this process, without a listener, on files below Config.Dir,
// or is a server at Config.URL; the code is the same. A write returns when it is
// durable (with SyncEvery 0). The meaning and the lifetime of a value belong to the
// packages that use it.
//
//	s, err := store.Open(ctx, store.Config{Dir: dataDir})
//	b, err := s.Bucket(ctx, store.BucketConfig{Name: "TICKETS", Share: 0.3})
//	tickets := store.NewTable(b, store.TableConfig[Ticket]{Prefix: "ticket."})
//	rev, err := tickets.Create(ctx, "42", &ticket)                    // ErrExists
//	row, err := tickets.Update(ctx, "42", func(t *Ticket) error {…}) // retried after a lost race
//
// One process owns a directory, which is locked by the operating system; OwnershipLost
// reports that it was replaced. Any number of processes share a store at a URL. They
// change its values by comparing revisions, and send each other messages (Broadcast,
// Subscribe) that may be lost.
//
// Failures:
//
//	a cap is reached, or the disk      ErrFull for writes; reads and deletes work, and
//	has less than MinFree left         writes do as soon as there is space
//	the engine fails                   it is restarted with exponential backoff; calls wait
//	                                   within their context, else ErrUnavailable; buckets
//	                                   and logs stay valid
//	the process is killed              no acknowledged write is lost; in a bucket without
//	                                   encryption a deleted key may have an old value again,
//	                                   see Bucket.Delete
//	a log or a bucket is full          Status names it until it accepts a write, or could
//	the end of files is damaged        it is removed before the engine opens the files,
//	                                   logged, and returned by Log.Damage
//	files are damaged elsewhere        Open returns repair.ErrNeeded; Repair removes the
//	                                   damage and keeps the rest. Damage that is found
//	                                   later is skipped
//
// The files of a directory:
//
//	lock                                        the owner (pid and name)
//	store/jetstream/$G/streams/<LOG>            a log
//	store/jetstream/$G/streams/KV_<BUCKET>      a bucket
//	store/jetstream/$G/streams/BLOB_<BUCKET>    its values above 512 KiB
//	store/jetstream/$G/streams/KEYS_<BUCKET>    its data keys, if its values are encrypted
package store

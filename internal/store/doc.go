// Package store keeps what must not be lost. It has one engine, NATS JetStream,
// and is the only package that knows it: others see buckets, logs and errors.
//
//	Bucket  keys with one value each, changed by comparing revisions
//	Log     messages that are appended, read in order and followed
//
// The engine runs inside this process, without a listener, on files below
// Config.Dir, or is a server of its own at Config.URL; the code is the same. A
// write returns when it is on disk (with SyncEvery 0). What a value means, who
// may change it, and when it goes, is the business of the packages above.
//
//	s, err := store.Open(ctx, store.Config{Dir: dataDir})
//	b, err := s.Bucket(ctx, store.BucketConfig{Name: "REQUESTS", Share: 0.3})
//	rev, err := b.Create(ctx, "req.42", record)        // ErrExists
//	rev, err = b.Update(ctx, "req.42", changed, rev)   // ErrConflict: read it again, decide again
//
// One process owns a store. A directory is locked by the operating system; a
// store at a URL by a lease that is renewed, and Lost tells when it is gone.
//
// When something goes wrong:
//
//	a cap is reached, or the disk      ErrFull for writes; reads and deletes go on,
//	has less than MinFree left         and writes do when there is room
//	the engine gives up                it is restarted with growing pauses; calls wait
//	                                   for it within their context, else ErrUnavailable;
//	                                   buckets and logs stay valid
//	the process is killed              nothing that was acknowledged is lost; a key that was
//	                                   deleted may be back with an old value, see Bucket.Delete
//	a log or a bucket is full          Status names it until it takes a write, or could
//	files are damaged                  what cannot be read is cut out before the engine opens
//	                                   them, or skipped where that is found later; it is said
//	                                   in the log, and by Log.Damaged; nothing else is lost
//
// The files of a directory:
//
//	lock                                        who has it (pid and owner)
//	store/jetstream/$G/streams/<LOG>            a log
//	store/jetstream/$G/streams/KV_<BUCKET>      a bucket
//	store/jetstream/$G/streams/BLOB_<BUCKET>    its values above 512 KiB
package store

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble"
	"go.etcd.io/bbolt"

	"github.com/caprouter/caprouter/internal/store"
)

// engine stores batches durably, in order.
type engine interface {
	write(ctx context.Context, records [][]byte) error
	close() error
}

func openEngine(ctx context.Context, name, dir string) (engine, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	switch name {
	case "file":
		f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		return fileEngine{f}, err
	case "jetstream":
		return openJetStream(ctx, dir)
	case "bbolt":
		return openBolt(dir)
	case "pebble":
		return openPebble(dir)
	}
	return nil, fmt.Errorf("no engine %q", name)
}

// fileEngine is the lower bound: an appended and synced file that nothing reads.
type fileEngine struct{ file *os.File }

func (e fileEngine) write(_ context.Context, records [][]byte) error {
	if _, err := e.file.Write(bytes.Join(records, nil)); err != nil {
		return err
	}
	return e.file.Sync()
}

func (e fileEngine) close() error { return e.file.Close() }

// jetStream is the embedded engine of the router: one message for each batch.
type jetStream struct {
	store *store.Store
	log   *store.Log
}

func openJetStream(ctx context.Context, dir string) (engine, error) {
	s, err := store.Open(ctx, store.Config{Dir: dir})
	if err != nil {
		return nil, err
	}
	log, err := s.Log(ctx, store.LogConfig{Name: "AUDIT", Subjects: []string{"audit.>"}})
	return jetStream{s, log}, err
}

func (e jetStream) write(ctx context.Context, records [][]byte) error {
	_, err := e.log.Append(ctx, "audit.main", bytes.Join(records, nil), store.AppendOptions{})
	return err
}

func (e jetStream) close() error { return e.store.Close() }

// bolt stores each record under its number, a batch in one transaction.
type bolt struct{ db *bbolt.DB }

var boltBucket = []byte("audit")

func openBolt(dir string) (engine, error) {
	db, err := bbolt.Open(filepath.Join(dir, "bolt.db"), 0o600, nil)
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(boltBucket)
		return err
	})
	return bolt{db}, err
}

func (e bolt) write(_ context.Context, records [][]byte) error {
	return e.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(boltBucket)
		b.FillPercent = 0.9 // keys only grow
		for _, data := range records {
			n, err := b.NextSequence()
			if err == nil {
				err = b.Put(numberKey(n), data)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (e bolt) close() error { return e.db.Close() }

// pebbleDB stores each record under its number, a batch in one synced commit.
type pebbleDB struct {
	db   *pebble.DB
	next uint64
}

func openPebble(dir string) (engine, error) {
	db, err := pebble.Open(filepath.Join(dir, "pebble"), &pebble.Options{Logger: quiet{}})
	return &pebbleDB{db: db}, err
}

func (e *pebbleDB) write(_ context.Context, records [][]byte) error {
	batch := e.db.NewBatch()
	for _, data := range records {
		e.next++
		if err := batch.Set(numberKey(e.next), data, nil); err != nil {
			return err
		}
	}
	return errors.Join(batch.Commit(pebble.Sync), batch.Close())
}

func (e *pebbleDB) close() error { return e.db.Close() }

// quiet discards the log of Pebble.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

func numberKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

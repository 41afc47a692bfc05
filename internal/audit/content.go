package audit

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/store"
)

// sealedContent is the first byte of a content that is encrypted. The hash chain covers
// the ciphertext, so that Verify needs no key. A content of an earlier version is JSON.
//
//	0xE1 │ size │ sealed Content │ size │ sealed Answer
//
// Sizes are varints; that of a missing Answer is 0.
const sealedContent = 0xE1

// contentContext is the associated data that binds a content to its record.
func contentContext(rec *Record, part string) []byte {
	return []byte(part + " " + string(rec.Kind) + " " + rec.RequestID)
}

func sealContent(rec *Record, keys *contentkey.Keyring) []byte {
	content, answer := keys.SealedSize(len(rec.Content)), 0
	if rec.Answer != nil {
		answer = keys.SealedSize(len(rec.Answer))
	}
	out := append(make([]byte, 0, 1+2*binary.MaxVarintLen32+content+answer), sealedContent)
	out = binary.AppendUvarint(out, uint64(content))
	out = keys.AppendSeal(out, rec.Content, contentContext(rec, "content"))
	out = binary.AppendUvarint(out, uint64(answer))
	if rec.Answer != nil {
		out = keys.AppendSeal(out, rec.Answer, contentContext(rec, "answer"))
	}
	return out
}

// openContent sets the Content of the record, and the Answer if the caller wants it.
func openContent(rec *Record, data []byte, keys *contentkey.Keyring, withAnswer bool) (err error) {
	if len(data) == 0 || data[0] != sealedContent {
		rec.Content = data
		return nil
	}
	r := batchDecoder{rest: data[1:]}
	content, answer := r.readText(len(data)), r.readText(len(data))
	if r.failed || len(r.rest) > 0 {
		return fmt.Errorf("%w: the content of record %d is incomplete", store.ErrDamaged, rec.Position)
	}
	rec.Content, err = keys.Open(content, contentContext(rec, "content"))
	if err == nil && withAnswer && len(answer) > 0 {
		rec.Answer, err = keys.Open(answer, contentContext(rec, "answer"))
	}
	if rec.Content == nil {
		rec.Content = []byte{} // an empty content is not an erased one
	}
	if err != nil {
		return fmt.Errorf("decrypt record %d: %w", rec.Position, err)
	}
	return nil
}

// loadRecord returns a record with its content and answer.
func (c *storedChain) loadRecord(ctx context.Context, b *batch, i int) (*Record, error) {
	rec, err := b.decodeRecord(i)
	if err == nil {
		err = c.loadContent(ctx, b, i, rec, true)
	}
	return rec, err
}

// loadContent sets the content of a record, wherever that is stored. A content that
// disappears meanwhile was erased.
func (c *storedChain) loadContent(ctx context.Context, b *batch, i int, rec *Record, withAnswer bool) (err error) {
	e := &b.entries[i].content
	data := e.data
	switch e.state {
	case contentSeparate:
		if data, err = joinParts(ctx, c.stream, e); errors.Is(err, store.ErrNotFound) {
			rec.Erased = true
			return nil
		}
	case contentNone, contentRemoved:
		return nil
	}
	if err != nil {
		return err
	}
	return openContent(rec, data, c.keys, withAnswer)
}

func joinParts(ctx context.Context, log *store.Log, c *entryContent) ([]byte, error) {
	var data []byte
	for _, seq := range c.parts {
		m, err := log.Get(ctx, seq)
		if err != nil {
			return nil, err
		}
		data = append(data, m.Data...)
	}
	return data, nil
}

package events

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/store"
)

// logView prints the contents of a log, with the sequences replaced by the numbers of the appends.
type logView struct {
	log   eventLog
	first uint64 // sequence of the first append
}

func (v logView) number(seq uint64) uint64 { return seq - v.first }

func (v logView) show(m store.Message, err error) string {
	if err != nil {
		return fmt.Sprint(errors.Is(err, store.ErrNotFound))
	}
	return fmt.Sprintf("%d %s %s", v.number(m.Seq), m.Subject, m.Data)
}

// state returns the results of reading the log.
func (v logView) state(t *testing.T, subjects []string, from uint64) (found []string) {
	t.Helper()
	for _, subject := range append(subjects, allSubjects) {
		last, err := v.log.Last(t.Context(), subject)
		found = append(found, "last "+v.show(last, err))
		next, err := v.log.Next(t.Context(), subject, v.first+from)
		found = append(found, "next "+v.show(next, err))
		must(t, v.log.Read(t.Context(), store.ReadFrom{Seq: v.first + from, Subject: subject}, func(m store.Message) error {
			found = append(found, "read "+v.show(m, nil))
			return nil
		}))
	}
	return found
}

// TestMemoryLog_BehavesLikeStoreLog compares both implementations of eventLog.
func TestMemoryLog_BehavesLikeStoreLog(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	memory, shared := logView{log: newMemoryLog(maxMemoryLog, time.Now)}, logView{log: openSharedLog(t)}
	subjects := []string{prefix + "a", prefix + "b", prefix + "c"}
	for i := range uint64(120) {
		subject := subjects[rng.IntN(len(subjects))]
		if rng.IntN(8) == 0 {
			must(t, memory.log.Purge(t.Context(), subject))
			must(t, shared.log.Purge(t.Context(), subject))
		}
		for _, v := range []*logView{&memory, &shared} {
			seq, err := v.log.Append(t.Context(), subject, fmt.Append(nil, i), store.AppendOptions{})
			must(t, err)
			if i == 0 {
				v.first = seq
			}
			if got := v.number(seq); got != i {
				t.Fatalf("got sequence %d, want %d", got, i)
			}
		}
		if i%10 != 0 {
			continue
		}
		from := rng.Uint64N(i + 1)
		if diff := cmp.Diff(shared.state(t, subjects, from), memory.state(t, subjects, from)); diff != "" {
			t.Fatalf("after %d events, from %d (-store +memory):\n%s", i+1, from, diff)
		}
		want, err := shared.log.Info(t.Context())
		must(t, err)
		got, err := memory.log.Info(t.Context())
		must(t, err)
		if shared.number(want.First) != memory.number(got.First) || shared.number(want.Last) != memory.number(got.Last) {
			t.Fatalf("got events %d to %d, want %d to %d", memory.number(got.First), memory.number(got.Last), shared.number(want.First), shared.number(want.Last))
		}
	}
}

func TestMemoryLog_EvictsOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const kept = 4
		message := store.Message{Subject: prefix + "a", Data: []byte("0")}
		l := newMemoryLog(kept*sizeOf(&message), time.Now)
		var last uint64
		for i := range 10 {
			last, _ = l.Append(t.Context(), message.Subject, fmt.Append(nil, i), store.AppendOptions{})
		}
		info, _ := l.Info(t.Context())
		if info.First != last-kept+1 || info.Last != last || info.Bytes != uint64(l.limit) {
			t.Errorf("got %+v, want the last %d of %d", info, kept, last)
		}
		ctx, cancel := context.WithTimeout(t.Context(), maxAge+expiryInterval+time.Second) // on the clock of the test
		defer cancel()
		if err := l.Follow(ctx, last+1, func(store.Message) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Follow: got %v, want %v", err, context.DeadlineExceeded)
		}
		l.mu.Lock()
		if len(l.messages) != 0 || l.bytes != 0 || len(l.bySubject) != 0 {
			t.Errorf("after %v: got %d messages with %d bytes, want none", maxAge, len(l.messages), l.bytes)
		}
		l.mu.Unlock()
	})
}

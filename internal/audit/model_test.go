package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
)

// model contains the expected records of a log by request.
type model struct {
	fixture  *logFixture
	auditLog *Log
	start    time.Time
	requests []*modelled
}

type modelled struct {
	id                string
	decision, outcome []byte // nil = not recorded
	erased            bool   // the contents recorded so far were erased
	maybe             bool   // a write failed, so the record may be stored or not
}

// After any sequence of operations, acknowledged records are stored, erased contents are not, and
// the log verifies.
func TestLog_MatchesModel(t *testing.T) {
	d := newLogFixture(t)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		// Each run has its own chain in one store, because opening a store is slow.
		writer := fmt.Sprintf("w%d", run)
		m := &model{fixture: d, start: time.Now()}
		open := func() {
			m.auditLog = d.open(func(c *Config) {
				c.Writer, c.HeadFile = writer, d.headFile()+"."+writer
			})
		}
		open()
		rt.Repeat(map[string]func(*rapid.T){
			"":         func(rt *rapid.T) {},
			"decision": m.decide,
			"outcome":  m.end,
			"erase":    m.erase,
			"find":     m.find,
			"kill":     func(*rapid.T) { d.kill(m.auditLog); open() },
			"close":    func(*rapid.T) { d.close(m.auditLog); open() },
			"fail":     m.fail,
			"forget":   func(*rapid.T) { m.auditLog.index = newIndex(4) },
		})
		for _, r := range m.requests {
			m.check(rt, r)
		}
		d.close(m.auditLog)
		report, err := Verify(t.Context(), VerifyConfig{
			Log: d.log, Writer: writer, HeadFile: d.headFile() + "." + writer, Signer: testKey,
		})
		if err != nil {
			rt.Fatal(err)
		}
		for _, p := range report.Problems {
			rt.Errorf("got problem %q, want none", p)
		}
	})
}

func (m *model) any(rt *rapid.T) *modelled {
	if len(m.requests) == 0 {
		rt.Skip("no request yet")
	}
	return m.requests[rapid.IntRange(0, len(m.requests)-1).Draw(rt, "request")]
}

func (m *model) decide(rt *rapid.T) {
	n := len(m.requests)
	rec := decisionOf(m.start, n)
	m.fixture.append(m.auditLog, rec)
	m.requests = append(m.requests, &modelled{id: rec.RequestID, decision: rec.Content})
}

func (m *model) end(rt *rapid.T) {
	r := m.any(rt)
	if r.outcome != nil || r.erased || r.maybe {
		rt.Skip("has ended")
	}
	rec := outcomeOf(m.start, 0)
	rec.RequestID = r.id
	m.fixture.append(m.auditLog, rec)
	r.outcome = rec.Content
}

// fail makes a write return an error, whether it was stored or not.
func (m *model) fail(rt *rapid.T) {
	arrives := rapid.Bool().Draw(rt, "arrives")
	d := m.fixture
	lose := appendFunc(func(ctx context.Context, subject string, data []byte, opts store.AppendOptions) (uint64, error) {
		d.lose.Store(nil)
		if arrives {
			if _, err := d.log.Append(ctx, subject, data, opts); err != nil {
				return 0, err
			}
		}
		return 0, errLost
	})
	d.lose.Store(&lose)
	rec := decisionOf(m.start, len(m.requests))
	err := m.auditLog.Append(context.Background(), rec)
	if arrives != (err == nil) {
		rt.Fatalf("got error %v of a write that was stored: %t", err, arrives)
	}
	r := &modelled{id: rec.RequestID}
	if arrives {
		r.decision = rec.Content
	} else {
		r.maybe = true
	}
	m.requests = append(m.requests, r)
}

func (m *model) erase(rt *rapid.T) {
	r := m.any(rt)
	want := 0
	for _, content := range [][]byte{r.decision, r.outcome} {
		if content != nil && !r.erased {
			want++
		}
	}
	if got, err := m.auditLog.Erase(context.Background(), r.id, &contract.Caller{Tenant: "acme", Subject: "ana"}, 0); err != nil || got != want {
		rt.Fatalf("got %d contents of %s erased, error %v, want %d", got, r.id, err, want)
	}
	r.erased = true
}

func (m *model) find(rt *rapid.T) { m.check(rt, m.any(rt)) }

func (m *model) check(rt *rapid.T, r *modelled) {
	found, err := m.auditLog.Find(context.Background(), r.id)
	if r.decision == nil && r.outcome == nil {
		if !errors.Is(err, store.ErrNotFound) {
			rt.Fatalf("request %s was not recorded: got %+v, error %v", r.id, found, err)
		}
		return
	}
	if err != nil {
		rt.Fatal(err)
	}
	for _, pair := range []struct {
		rec  *Record
		want []byte
	}{{found.Decision, r.decision}, {found.Outcome, r.outcome}} {
		switch {
		case pair.want == nil && pair.rec != nil:
			rt.Fatalf("request %s: got a %s that was not recorded", r.id, pair.rec.Kind)
		case pair.want == nil:
		case pair.rec == nil:
			rt.Fatalf("request %s: got no record, want one", r.id)
		case r.erased != pair.rec.Erased, !r.erased && !bytes.Equal(pair.rec.Content, pair.want):
			rt.Fatalf("request %s: got content %q, erased %t, want %q, %t", r.id, pair.rec.Content, pair.rec.Erased, pair.want, r.erased)
		}
	}
}

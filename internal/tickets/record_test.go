package tickets

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func asked(id, subject, prompt string) *Demand {
	return &Demand{RequestID: id, Unmet: &fallback.Unmet{
		Caller: &contract.Caller{Subject: subject}, Prompt: prompt, Reason: fallback.ReasonNoMatch,
		Catalogue: &capabilities.Catalogue{Routing: capabilities.DefaultRouting()}, Decision: &contract.Decision{Classification: contract.Classification{Intent: "x", Domains: []string{"y"}}},
	}}
}

func TestIsMilestone_GrowsWithCount(t *testing.T) {
	for n, want := range map[int]bool{0: false, 1: false, 9: false, 10: true, 11: false, 20: false, 99: false, 100: true, 110: false, 1000: true, 5000: false, 100_000: true} {
		if got := isMilestone(n); got != want {
			t.Errorf("isMilestone(%d): got %v, want %v", n, got, want)
		}
	}
}

func TestAddRequest_CountsPerDay(t *testing.T) {
	r := newRecord("t", asked("", "ana", "p"))
	for _, days := range []int{0, 0, 1, 5, 29, 30, 31, 28, 400} { // 28: the clock was set back
		r.addRequest(asked("", "ana", "p"), 1, noon.AddDate(0, 0, days))
	}
	if got := r.Ticket.PerDay; len(got) != 1 || got[0].Count != 1 {
		t.Errorf("got %v a year later, want that day only", got)
	}
	r = newRecord("t", asked("", "ana", "p"))
	for days := range 100 {
		r.addRequest(asked("", "ana", "p"), 1, noon.AddDate(0, 0, days))
		r.addRequest(asked("", "ana", "p"), 1, noon.AddDate(0, 0, days))
	}
	want := []contract.DayCount{}
	for days := 70; days < 100; days++ {
		want = append(want, contract.DayCount{Day: noon.AddDate(0, 0, days).Format(time.DateOnly), Count: 2})
	}
	if diff := cmp.Diff(want, r.Ticket.PerDay); diff != "" {
		t.Errorf("days (-want +got):\n%s", diff)
	}
}

// Callers are counted, and cannot be identified from the record.
func TestAddRequest_HashesCallers(t *testing.T) {
	a, b := newRecord("a", asked("", "ana", "p")), newRecord("b", asked("", "ana", "p"))
	for _, r := range []*ticketRecord{a, b} {
		r.addRequest(asked("1", "ana", "p"), 1, noon)
		r.addRequest(asked("2", "ana", "p"), 1, noon)
		r.addRequest(asked("3", "bob", "p"), 1, noon)
	}
	if a.Ticket.Callers != 2 {
		t.Errorf("got %d callers, want 2", a.Ticket.Callers)
	}
	if a.Callers[0] == b.Callers[0] {
		t.Error("got the same hash for a caller in two tickets, want different ones")
	}
	value, err := encodeRecord(a.Ticket.TicketID, a)
	if err != nil || strings.Contains(string(value), "ana") {
		t.Errorf("got the name of the caller in the record (%v): %s", err, value)
	}
}

// TestRecord_MatchesModel compares a ticket with a list of its requests.
func TestRecord_MatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRecord("t", asked("", "", ""))
		total, callers, words := 0, map[string]bool{}, map[string]string{} // prompts by request
		now := noon
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "hours")) * time.Hour)
			if total > 0 && rapid.IntRange(0, 5).Draw(t, "forget") == 0 {
				id := fmt.Sprint("r", rapid.IntRange(0, step).Draw(t, "which"))
				r.eraseRequest(id)
				delete(words, id)
			} else {
				id, subject := fmt.Sprint("r", step), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "caller")
				words[id] = fmt.Sprint("prompt ", rapid.IntRange(0, 30).Draw(t, "prompt"))
				r.addRequest(asked(id, subject, words[id]), 0.5, now)
				total++
				callers[subject] = true
			}
			value, err := encodeRecord(r.Ticket.TicketID, r)
			if err != nil {
				t.Fatal(err)
			}
			back, err := decodeRecord(r.Ticket.TicketID, value)
			if err != nil {
				t.Fatal(err)
			}
			r = back
			checkRecord(t, r, total, len(callers), words)
		}
	})
}

func checkRecord(t *rapid.T, r *ticketRecord, total, callers int, words map[string]string) {
	k := &r.Ticket
	if k.Count != total || k.Callers != callers || k.Intents["x"] != total || k.Domains["y"] != total || k.Reasons[fallback.ReasonNoMatch] != total {
		t.Fatalf("got %+v, want %d requests of %d callers everywhere", k, total, callers)
	}
	if len(k.Examples) > maxExamples || len(r.Recent) > maxRecent {
		t.Fatalf("got %d examples and %d ids, want at most %d and %d", len(k.Examples), len(r.Recent), maxExamples, maxRecent)
	}
	seen := map[string]bool{}
	for i, e := range k.Examples {
		if words[e.RequestID] != e.Prompt || seen[e.Prompt] {
			t.Fatalf("got example %+v of an erased request, or a duplicate", e)
		}
		if seen[e.Prompt] = true; i > 0 && e.At.After(k.Examples[i-1].At) {
			t.Fatalf("got examples %v, want the newest first", k.Examples)
		}
	}
	if r.TitleFrom != "" && words[r.TitleFrom] != k.Title {
		t.Fatalf("got title %q of the erased request %s", k.Title, r.TitleFrom)
	}
}

// FuzzDecode checks that no stored bytes panic, and that a decoded ticket can be used, stored and
// decoded again.
func FuzzDecode(f *testing.F) {
	r := newRecord("t", asked("r1", "ana", "p"))
	r.addRequest(asked("r1", "ana", "book a flight"), 1, noon)
	r.addNotice(webhookNotice{ID: "n", Event: eventOpened, At: noon})
	value, err := encodeRecord(r.Ticket.TicketID, r)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(value)
	f.Add(value[:len(value)/2])
	f.Add([]byte(`{"version":1,"ticket":{"ticket_id":"t"}}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeRecord("t", data)
		if err != nil {
			return
		}
		newIndex().put(r, 1)
		r.addRequest(asked("r2", "bob", "book two flights"), 0.5, noon)
		r.eraseRequest("r1")
		value, err := encodeRecord(r.Ticket.TicketID, r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeRecord(r.Ticket.TicketID, value); err != nil {
			t.Fatalf("%v: %s", err, value)
		}
	})
}

func TestPromptExcerpt_IsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.String().Draw(t, "prompt") + string(rapid.SliceOfN(rapid.Byte(), 0, 600).Draw(t, "bytes"))
		got := promptExcerpt(in)
		if !utf8.ValidString(got) || len(got) > maxPromptBytes || utf8.ValidString(in) && !strings.HasPrefix(in, got) {
			t.Fatalf("got %q of %q", got, in)
		}
	})
}

// The queue has no clock: the caller passes the time.
func TestDeliveryQueue_ReturnsDueDeliveries(t *testing.T) {
	q := newQueue(retryDelay)
	if it, wait := q.nextDue(noon); it != nil || wait != idleWait {
		t.Errorf("empty queue: got %v, %s, want nothing for %s", it, wait, idleWait)
	}
	for i, id := range []string{"b", "a", "c"} {
		q.add(delivery{notice: id, at: noon, due: noon.Add(time.Duration(i/2) * time.Minute)})
	}
	q.add(delivery{notice: "a", due: noon.Add(-time.Hour)}) // already queued
	if it, _ := q.nextDue(noon); it == nil || it.notice != "a" {
		t.Errorf("got %+v, want a", it)
	}
	q.retryLater("a", noon)
	q.remove("b")
	if it, wait := q.nextDue(noon); it != nil || wait != 5*time.Second {
		t.Errorf("got %+v, %s; want nothing for 5s", it, wait)
	}
	if it, _ := q.nextDue(noon.Add(5 * time.Second)); it == nil || it.notice != "a" || it.tries != 1 {
		t.Errorf("got %+v, want a for the second time", it)
	}
	q.retryLater("gone", noon)
	q.stop()
	q.add(delivery{notice: "d"})
	if it, wait := q.nextDue(noon.Add(time.Hour)); it != nil || wait != idleWait {
		t.Errorf("got %v, %s after stop, want nothing", it, wait)
	}
}

// The delays add up to about ten attempts a day.
func TestRetryDelay_Grows(t *testing.T) {
	tries, spent := 1, time.Duration(0)
	for ; spent < maxDeliveryAge; tries++ {
		if retryDelay(tries+1) < retryDelay(tries) || retryDelay(tries) < time.Second {
			t.Fatalf("got delay %[2]s after attempt %[1]d, and %[3]s after the next", tries, retryDelay(tries), retryDelay(tries+1))
		}
		spent += retryDelay(tries)
	}
	if tries < 8 || tries > 20 {
		t.Errorf("got %d attempts a day, want 8 to 20", tries)
	}
	if retryDelay(0) != retryDelay(1) || retryDelay(1000) != retryDelay(100) {
		t.Error("got retryDelay unbounded at its ends, want it constant")
	}
}

package tickets

import (
	"fmt"
	"testing"

	"github.com/caprouter/caprouter/internal/pagination"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// filled returns the configuration of a bucket with this many tickets of ten
// requests each.
func filled(b *testing.B, tickets int) Config {
	b.Helper()
	bucket, err := teststore.Open(b).Bucket(b.Context(), store.BucketConfig{Name: "TICKETS"})
	if err != nil {
		b.Fatal(err)
	}
	ids := 0
	cfg := Config{Bucket: bucket, NewID: func() string { ids++; return fmt.Sprintf("id-%06d", ids) }}
	for i := range tickets {
		id := cfg.NewID()
		r := newRecord(id, asked("", "", ""))
		for k := range 10 {
			r.addRequest(asked(fmt.Sprintf("%d-%d", i, k), "ana", fmt.Sprintf("please handle thing%d of our unit number%d", i, k)), 1, noon)
		}
		value, err := encodeRecord(r.Ticket.TicketID, r)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := bucket.Create(b.Context(), keyPrefix+id, value); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	return cfg
}

// BenchmarkOpen measures a start, which reads every ticket.
func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{100, 2000} {
		b.Run(fmt.Sprint(n, " tickets"), func(b *testing.B) {
			cfg := filled(b, n)
			for b.Loop() {
				if _, err := Open(b.Context(), cfg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPropose records requests in a bucket of a thousand tickets.
func BenchmarkPropose(b *testing.B) {
	d, err := Open(b.Context(), filled(b, 1000))
	if err != nil {
		b.Fatal(err)
	}
	requests := 0
	for b.Loop() {
		requests++
		if _, err := d.Propose(b.Context(), asked(fmt.Sprint("r", requests), "bob", "handle thing77 of our unit today")); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkList reads a page of a hundred tickets.
func BenchmarkList(b *testing.B) {
	d, err := Open(b.Context(), filled(b, 1000))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if page, err := d.List(b.Context(), ListQuery{AllTenants: true}); err != nil || len(page.Tickets) != pagination.DefaultSize {
			b.Fatalf("got %v (%v)", page, err)
		}
	}
}

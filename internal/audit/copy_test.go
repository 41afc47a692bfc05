package audit

import "testing"

func TestOpenCopy_ReadsLogCompletely(t *testing.T) {
	dir, requests := newFilledDir(t)
	c, err := OpenCopy(t.Context(), dir, testRing)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got := 0
	for q := (Query{Limit: 2}); ; {
		page, err := c.Read(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		got += len(page.Records)
		if page.Next == q.Cursor {
			break
		}
		q.Cursor = page.Next
	}
	if got != requests {
		t.Errorf("got %d outcomes, want %d", got, requests)
	}
	last, outcomes := uint64(0), 0
	if err := c.Walk(t.Context(), func(rec *Record) {
		if rec.Position != last+1 {
			t.Errorf("got record %d after %d, want each once, in order", rec.Position, last)
		}
		if last = rec.Position; rec.Kind == KindOutcome {
			outcomes++
		}
	}); err != nil {
		t.Fatal(err)
	}
	if outcomes != requests {
		t.Errorf("got %d outcomes from the walk, want %d", outcomes, requests)
	}
	if c, err := OpenCopy(t.Context(), t.TempDir(), testRing); err == nil {
		c.Close()
		t.Error("directory without a log: got no error, want one")
	}
}

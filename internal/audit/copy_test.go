package audit

import "testing"

func TestOpenCopy_ReadsLogInPages(t *testing.T) {
	dir, requests := filled(t)
	c, err := OpenCopy(t.Context(), dir)
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
	if c, err := OpenCopy(t.Context(), t.TempDir()); err == nil {
		c.Close()
		t.Error("a directory without a log: got no error")
	}
}

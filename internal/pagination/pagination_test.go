package pagination_test

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/pagination"
)

func positions() *rapid.Generator[pagination.Position] {
	return rapid.Custom(func(t *rapid.T) pagination.Position {
		nanoseconds := rapid.Int64Range(0, 3).Draw(t, "nanoseconds")
		return pagination.Position{
			Created: time.Date(2026, 1, 1, 0, 0, 0, int(nanoseconds), time.UTC),
			ID:      rapid.StringMatching(`[a-c]{1,2}`).Draw(t, "id"),
		}
	})
}

func TestCursor_ReturnsTheRestOfTheList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfDistinct(positions(), func(p pagination.Position) pagination.Position { return p }).Draw(t, "list")
		slices.SortFunc(list, pagination.Position.Compare)
		for i := 1; i < len(list); i++ {
			if newer, older := list[i-1].Created, list[i].Created; newer.Before(older) {
				t.Fatalf("%v is listed before %v", newer, older)
			}
		}
		for i, last := range list {
			cursor, err := pagination.ParseCursor(last.Cursor())
			if err != nil {
				t.Fatal(err)
			}
			var rest []pagination.Position
			for _, p := range list {
				if cursor.Before(p) {
					rest = append(rest, p)
				}
			}
			if !slices.Equal(rest, list[i+1:]) {
				t.Fatalf("behind %v: %v, want %v", last, rest, list[i+1:])
			}
		}
	})
}

func TestParseCursor_Empty(t *testing.T) {
	p, err := pagination.ParseCursor("")
	if err != nil || p != (pagination.Position{}) {
		t.Fatalf("got %v, %v", p, err)
	}
	if !p.Before(pagination.Position{Created: time.Now().AddDate(100, 0, 0), ID: "a"}) {
		t.Error("the zero position is not before all entries")
	}
}

func TestParseCursor_Invalid(t *testing.T) {
	encode := base64.RawURLEncoding.EncodeToString
	for _, text := range []string{
		"x", "%%", "eCB5", strings.Repeat("A", 5000),
		encode([]byte("2026-01-01T00:00:00Z")),
		encode([]byte("2026-01-01T00:00:00Z ")),
		encode([]byte("yesterday a")),
		encode([]byte("2026-01-01T00:00:00Z " + strings.Repeat("a", 129))),
	} {
		_, err := pagination.ParseCursor(text)
		checkInvalid(t, err, "/cursor")
	}
}

func TestSize(t *testing.T) {
	for limit, want := range map[int]int{0: pagination.DefaultSize, 1: 1, pagination.MaxSize: pagination.MaxSize} {
		if got, err := pagination.Size(limit); err != nil || got != want {
			t.Errorf("%d: got %d, %v, want %d", limit, got, err, want)
		}
	}
	for _, limit := range []int{-1, pagination.MaxSize + 1} {
		_, err := pagination.Size(limit)
		checkInvalid(t, err, "/limit")
	}
}

func checkInvalid(t *testing.T, err error, pointer string) {
	t.Helper()
	var e *contract.Error
	if !errors.As(err, &e) || e.Code != contract.CodeInvalidRequest || len(e.Details) != 1 || e.Details[0].Pointer != pointer {
		t.Errorf("got %v, want an invalid %s", err, pointer)
	}
}

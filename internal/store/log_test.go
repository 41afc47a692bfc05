package store_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// forEachLog runs a test with a log in files and with one in memory.
func forEachLog(t *testing.T, test func(t *testing.T, l *store.Log)) {
	for _, memory := range []bool{false, true} {
		t.Run(fmt.Sprintf("memory=%t", memory), func(t *testing.T) {
			test(t, openLog(t, teststore.Open(t), store.LogConfig{Name: "LOG", Subjects: []string{"log.>", "extra"}, Memory: memory}))
		})
	}
}

func appendText(t testing.TB, l *store.Log, subject, text string) uint64 {
	t.Helper()
	return must[uint64](t)(l.Append(t.Context(), subject, []byte(text), store.AppendOptions{}))
}

func TestLog_AppendsInOrder(t *testing.T) {
	forEachLog(t, func(t *testing.T, l *store.Log) {
		ctx := t.Context()
		empty := must[store.LogInfo](t)(l.Info(ctx))
		if empty.Msgs != 0 || !empty.LastAt.IsZero() {
			t.Errorf("info of an empty log: got %+v, want no messages and no time", empty)
		}
		_, err := l.Last(ctx, "log.>")
		wantErr(t, "last of an empty log", err, store.ErrNotFound)

		first := appendText(t, l, "log.a", "1")
		second := appendText(t, l, "log.b", "2")
		third := appendText(t, l, "log.a", "3")
		if second != first+1 || third != second+1 {
			t.Errorf("got sequences %d, %d, %d, want consecutive ones", first, second, third)
		}
		for call, got := range map[string]store.Message{
			"get":              must[store.Message](t)(l.Get(ctx, first)),
			"first of subject": must[store.Message](t)(l.Next(ctx, "log.a", 0)),
			"next at":          must[store.Message](t)(l.Next(ctx, "log.*", first)),
		} {
			if got.Seq != first || string(got.Data) != "1" || got.Subject != "log.a" {
				t.Errorf("%s: got %+v, want the first message", call, got)
			}
		}
		if got := must[store.Message](t)(l.Next(ctx, "log.a", second)); got.Seq != third {
			t.Errorf("next after the first: got %d, want %d", got.Seq, third)
		}
		if got := must[store.Message](t)(l.Last(ctx, "log.b")); got.Seq != second {
			t.Errorf("last: got %d, want %d", got.Seq, second)
		}
		for _, seq := range []uint64{0, third + 1} {
			_, err := l.Get(ctx, seq)
			wantErr(t, fmt.Sprint("get ", seq), err, store.ErrNotFound)
		}
		_, err = l.Next(ctx, "log.a", third+1)
		wantErr(t, "next after the end", err, store.ErrNotFound)

		info := must[store.LogInfo](t)(l.Info(ctx))
		if info.First != first || info.Last != third || info.Msgs != 3 || info.Bytes == 0 || info.LastAt.IsZero() {
			t.Errorf("info: got %+v, want 3 messages from %d to %d", info, first, third)
		}
	})
}

func TestLog_AppendChecksIDAndExpectedSequence(t *testing.T) {
	forEachLog(t, func(t *testing.T, l *store.Log) {
		ctx := t.Context()
		appendTo := func(after *uint64, id string) (uint64, error) {
			return l.Append(ctx, "log.w", []byte("x"), store.AppendOptions{ID: id, ExpectLast: after})
		}
		first := must[uint64](t)(appendTo(new(uint64(0)), "w:1"))
		if again := must[uint64](t)(appendTo(new(uint64(0)), "w:1")); again != first {
			t.Errorf("append with the same ID: got sequence %d, want %d", again, first)
		}
		_, err := appendTo(new(uint64(0)), "w:2")
		wantErr(t, "append that expects an empty subject", err, store.ErrConflict)
		appendText(t, l, "log.other", "between")
		if _, err := appendTo(&first, "w:2"); err != nil {
			t.Errorf("append that expects the newest message of the subject: got error %v, want nil", err)
		}
		_, err = appendTo(&first, "w:3")
		wantErr(t, "append that expects an older message", err, store.ErrConflict)
		if got := must[store.LogInfo](t)(l.Info(ctx)).Msgs; got != 3 {
			t.Errorf("got %d messages, want 3", got)
		}
	})
}

func TestLog_RejectsInvalidSubjects(t *testing.T) {
	ctx := t.Context()
	s := teststore.Open(t)
	l := openLog(t, s, store.LogConfig{})
	for _, subject := range []string{"", "log", "log.", "log..a", "other.a", "log.*", "log.>", "log.a b", "$JS.API.INFO", "log.a\r\n"} {
		if _, err := l.Append(ctx, subject, nil, store.AppendOptions{}); err == nil || !strings.Contains(err.Error(), "subject") {
			t.Errorf("append to %q: got error %v, want one with the subject", subject, err)
		}
	}
	_, err := l.Append(ctx, "log.a", make([]byte, 1<<20), store.AppendOptions{})
	wantErr(t, "append of 1 MiB", err, store.ErrTooLarge)
	if _, err := l.Append(ctx, "log.a", make([]byte, 1000<<10), store.AppendOptions{}); err != nil {
		t.Errorf("append of 1000 KiB: got error %v, want nil", err)
	}
	_, last := l.Last(ctx, "a..b")
	_, next := l.Next(ctx, "", 1)
	for call, err := range map[string]error{
		"last": last, "next": next,
		"purge": l.Purge(ctx, ""),
		"read":  l.Read(ctx, store.ReadFrom{Subject: "a b"}, nil),
	} {
		if err == nil {
			t.Errorf("%s with an invalid subject: got no error, want one", call)
		}
	}
	for _, cfg := range []store.LogConfig{{Name: "a.b"}, {Name: "KV_X"}, {Name: "L", Share: 2}} {
		if _, err := s.Log(ctx, cfg); err == nil {
			t.Errorf("log %+v: got no error, want one", cfg)
		}
	}
	if _, err := s.Log(ctx, store.LogConfig{Name: "OVERLAP", Subjects: []string{"log.a"}}); err == nil || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("log with a subject of another log: got error %v, want a permanent one", err)
	}
}

func TestLog_Reads(t *testing.T) {
	forEachLog(t, func(t *testing.T, l *store.Log) {
		ctx := t.Context()
		var seqs []uint64
		var want []string
		for i := range 260 {
			text := fmt.Sprint(i)
			seqs = append(seqs, appendText(t, l, fmt.Sprintf("log.%d", i%2), text))
			want = append(want, text)
		}
		for _, tt := range []struct {
			name string
			from store.ReadFrom
			want []string
		}{
			{"all", store.ReadFrom{}, want},
			{"from a sequence", store.ReadFrom{Seq: seqs[250]}, want[250:]},
			{"from before the first", store.ReadFrom{Seq: 1}, want},
			{"to a sequence", store.ReadFrom{Seq: seqs[240], Before: seqs[250]}, want[240:250]},
			{"to a sequence, of a subject", store.ReadFrom{Seq: seqs[241], Before: seqs[245], Subject: "log.0"}, []string{"242", "244"}},
			{"to a sequence, since a time", store.ReadFrom{Since: time.Now().Add(-time.Hour), Before: seqs[3]}, want[:3]},
			{"to a sequence behind the end", store.ReadFrom{Seq: seqs[255], Before: seqs[259] + 100}, want[255:]},
			{"to the first sequence", store.ReadFrom{Seq: seqs[5], Before: seqs[5]}, nil},
			{"after the end", store.ReadFrom{Seq: seqs[259] + 1}, nil},
			{"since an hour ago", store.ReadFrom{Since: time.Now().Add(-time.Hour)}, want},
			{"since a later time", store.ReadFrom{Since: time.Now().Add(time.Hour)}, nil},
			{"subject", store.ReadFrom{Seq: seqs[250], Subject: "log.1"}, []string{"251", "253", "255", "257", "259"}},
			{"unused subject", store.ReadFrom{Subject: "log.9"}, nil},
			{"sequence takes precedence over time", store.ReadFrom{Seq: seqs[259], Since: time.Now().Add(time.Hour)}, want[259:]},
		} {
			t.Run(tt.name, func(t *testing.T) {
				if diff := cmp.Diff(tt.want, texts(t, l, tt.from)); diff != "" {
					t.Errorf("messages (-want +got):\n%s", diff)
				}
			})
		}
		at := must[store.Message](t)(l.Get(ctx, seqs[240])).At
		if got := texts(t, l, store.ReadFrom{Since: at}); got[0] != "240" {
			t.Errorf("since the time of message 240: got %s first, want 240", got[0])
		}
		seen := 0
		err := l.Read(ctx, store.ReadFrom{}, func(store.Message) error { seen++; return store.ErrStop })
		if err != nil || seen != 1 {
			t.Errorf("stopped read: got %d messages and error %v, want 1 and nil", seen, err)
		}
		errCallback := errors.New("callback")
		wantErr(t, "read with an error of the callback", l.Read(ctx, store.ReadFrom{}, func(store.Message) error { return errCallback }), errCallback)
	})
}

func TestLog_RemovesMessages(t *testing.T) {
	forEachLog(t, func(t *testing.T, l *store.Log) {
		ctx := t.Context()
		var seqs []uint64
		for i := range 8 {
			seqs = append(seqs, appendText(t, l, fmt.Sprintf("log.%d", i%2), fmt.Sprint(i)))
		}
		for range 2 {
			if err := l.Delete(ctx, seqs[3]); err != nil {
				t.Errorf("delete: got %v, want nil", err)
			}
		}
		if err := l.Delete(ctx, seqs[7]+100); err != nil {
			t.Errorf("delete of a missing message: got %v, want nil", err)
		}
		if diff := cmp.Diff([]string{"0", "1", "2", "4", "5", "6", "7"}, texts(t, l, store.ReadFrom{})); diff != "" {
			t.Errorf("after delete (-want +got):\n%s", diff)
		}
		for _, before := range []uint64{0, 1, seqs[2]} {
			if err := l.Trim(ctx, before); err != nil {
				t.Errorf("trim before %d: %v", before, err)
			}
		}
		if diff := cmp.Diff([]string{"2", "4", "5", "6", "7"}, texts(t, l, store.ReadFrom{})); diff != "" {
			t.Errorf("after trim (-want +got):\n%s", diff)
		}
		if err := l.Purge(ctx, "log.0"); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"5", "7"}, texts(t, l, store.ReadFrom{})); diff != "" {
			t.Errorf("after purge (-want +got):\n%s", diff)
		}
		if err := l.Trim(ctx, seqs[7]+1); err != nil {
			t.Error(err)
		}
		info := must[store.LogInfo](t)(l.Info(ctx))
		if info.Msgs != 0 || info.First != info.Last+1 || info.Last != seqs[7] {
			t.Errorf("info after all messages were removed: got %+v, want first = last + 1", info)
		}
	})
}

func TestLog_Follows(t *testing.T) {
	forEachLog(t, func(t *testing.T, l *store.Log) {
		for i := range 600 { // more than two fetches
			appendText(t, l, "log.a", fmt.Sprint(i))
		}
		got := make(chan string, 2000)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- l.Follow(ctx, 1, func(m store.Message) error { got <- string(m.Data); return nil })
		}()
		for i := 600; i < 1200; i++ {
			appendText(t, l, "log.a", fmt.Sprint(i))
		}
		for i := range 1200 {
			if text := testkit.Receive(t, got); text != fmt.Sprint(i) {
				t.Fatalf("got %s, want %d", text, i)
			}
		}
		cancel()
		wantErr(t, "cancelled follow", testkit.Receive(t, done), context.Canceled)

		fromNow := make(chan error, 1)
		go func() {
			fromNow <- l.Follow(t.Context(), 0, func(m store.Message) error {
				if string(m.Data) != "later" {
					return fmt.Errorf("got %s, want only later messages", m.Data)
				}
				return store.ErrStop
			})
		}()
		testkit.Eventually(t, "a follower of new messages receives one", func() bool {
			appendText(t, l, "log.a", "later")
			select {
			case err := <-fromNow:
				if err != nil {
					t.Error(err)
				}
				return true
			default:
				return false
			}
		})
		errCallback := errors.New("callback")
		wantErr(t, "follow with an error of the callback", l.Follow(t.Context(), 1, func(store.Message) error { return errCallback }), errCallback)
	})
}

func TestLog_DeleteOverwritesBytes(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := openLog(t, s, store.LogConfig{})
	appendText(t, l, "log.a", "before")
	seq := appendText(t, l, "log.a", "canary-7f3a")
	appendText(t, l, "log.a", "after")
	if err := l.Delete(t.Context(), seq); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if found := grep(t, dir, "canary-7f3a"); found != "" {
		t.Errorf("got the deleted message in file %s, want it erased", found)
	}
	if grep(t, dir, "before") == "" || grep(t, dir, "after") == "" {
		t.Error("got no file with the other messages, want them found by the same search")
	}
}

func TestLog_MemorySequencesNeverRepeat(t *testing.T) {
	dir := t.TempDir()
	memory := store.LogConfig{Name: "LOG", Subjects: []string{"log.>"}, Memory: true}
	s := open(t, dir)
	before := appendText(t, openLog(t, s, memory), "log.a", "1")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	l := openLog(t, open(t, dir), memory)
	if got := texts(t, l, store.ReadFrom{}); got != nil {
		t.Errorf("got messages %q from before the restart, want none", got)
	}
	if after := appendText(t, l, "log.a", "2"); after <= before {
		t.Errorf("got sequence %d after %d before the restart, want a larger one", after, before)
	}
}

func TestLog_EvictsOldest(t *testing.T) {
	l := openLog(t, teststore.Open(t, func(c *store.Config) { c.MaxBytes = 1 << 20 }), store.LogConfig{
		Name: "LOG", Subjects: []string{"log.>"}, Memory: true, Evict: true, Share: 0.1,
	})
	var last uint64
	for i := range 200 {
		last = appendText(t, l, "log.a", strings.Repeat(fmt.Sprint(i%10), 1000))
	}
	info := must[store.LogInfo](t)(l.Info(t.Context()))
	if info.Last != last || info.Msgs >= 200 || info.Msgs < 50 || info.Bytes > 1<<20/10 {
		t.Errorf("got %+v, want the newest messages, within a tenth of 1 MiB", info)
	}
}

// A pattern matches the same subjects as an equivalent regular expression.
func TestSubjectMatches_FollowsPattern(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "b", "ab"})
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "*"}), 1, 4).Draw(t, "pattern")
		if rapid.Bool().Draw(t, "with tail wildcard") {
			pattern = append(pattern, ">")
		}
		subject := strings.Join(rapid.SliceOfN(part, 1, 5).Draw(t, "subject"), ".")
		text := strings.Join(pattern, ".")
		expr := "^" + strings.NewReplacer(".", `\.`, "*", `[^.]+`, ">", `.+`).Replace(text) + "$"
		want := regexp.MustCompile(expr).MatchString(subject)
		if got := store.Matches(text, subject); got != want {
			t.Errorf("matches(%q, %q): got %t, want %t", text, subject, got, want)
		}
	})
}

// An append with ExpectFor succeeds only if the expected message is the newest one of all
// subjects that match the pattern.
func TestLog_AppendExpectsLastOfPattern(t *testing.T) {
	for name, s := range map[string]*store.Store{
		"embedded": open(t, t.TempDir()), "external": teststore.OpenShared(t, teststore.Serve(t, t.TempDir(), -1), "a"),
	} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t, s, store.LogConfig{})
			original := appendText(t, l, "log.a", "original")
			first := must[uint64](t)(l.Append(t.Context(), "log.a.some.1", []byte("1"), store.AppendOptions{
				ExpectLast: new(uint64(0)), ExpectFor: "log.a.*.1", Origin: original,
			}))
			_, err := l.Append(t.Context(), "log.a.none.1", nil, store.AppendOptions{ExpectLast: new(uint64(0)), ExpectFor: "log.a.*.1"})
			wantErr(t, "append that expects no copy", err, store.ErrConflict)
			second := must[uint64](t)(l.Append(t.Context(), "log.a.none.1", nil, store.AppendOptions{ExpectLast: &first, ExpectFor: "log.a.*.1"}))
			_, err = l.Append(t.Context(), "log.a.some.1", nil, store.AppendOptions{ExpectLast: &first, ExpectFor: "log.a.*.1"})
			wantErr(t, "append that expects the first copy", err, store.ErrConflict)
			if m := must[store.Message](t)(l.Get(t.Context(), first)); m.Origin != original {
				t.Errorf("got origin %d, want %d", m.Origin, original)
			}
			var followed []uint64
			err = l.FollowSubjects(t.Context(), 1, []string{"log.a", "log.a.none.*"}, func(m store.Message) error {
				if followed = append(followed, m.Seq); len(followed) == 2 {
					return store.ErrStop
				}
				return nil
			})
			if diff := cmp.Diff([]uint64{original, second}, followed); err != nil || diff != "" {
				t.Errorf("follow: error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

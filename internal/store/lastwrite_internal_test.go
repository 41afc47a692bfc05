package store

import (
	"testing"
)

// Only changes of the known message exclude a write that expects it.
func TestLastWrite_LocksOutChangesOfKnownMessage(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(l *lastWrite, fn func() error) error
		want   bool // excludes the write
	}{
		{"no change", func(_ *lastWrite, fn func() error) error { return fn() }, false},
		{"known subject", func(l *lastWrite, fn func() error) error { return l.change("log.a", fn) }, true},
		{"all subjects", func(l *lastWrite, fn func() error) error { return l.change("log.>", fn) }, true},
		{"another subject", func(l *lastWrite, fn func() error) error { return l.change("log.b", fn) }, false},
		{"earlier messages", func(l *lastWrite, fn func() error) error { return l.removeBefore(5, fn) }, false},
		{"known message", func(l *lastWrite, fn func() error) error { return l.removeBefore(6, fn) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			message := newestMessage{"log.a", 5, 0}
			l := &lastWrite{newest: message, changing: map[string]int{}}
			err := tt.change(l, func() error {
				if unlocked := l.order.TryLock(); unlocked {
					l.order.Unlock()
					if tt.want {
						t.Error("got order unlocked, want a write to wait for the change")
					}
				} else if !tt.want {
					t.Error("got order locked, want a write not to wait for the change")
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if isKnown, _ := l.compare(message); isKnown == tt.want {
				t.Errorf("after the change: got known %v, want %v", isKnown, !tt.want)
			}
			if len(l.changing) != 0 {
				t.Errorf("got changes %v in progress, want none", l.changing)
			}
		})
	}
}

// A change of the subject during a write is recorded, because the written message is not known
// to be the newest then.
func TestLastWrite_RecordsChangesDuringWrite(t *testing.T) {
	l := &lastWrite{changing: map[string]int{}}
	_, changed := l.compare(newestMessage{})
	err := l.change("log.a", func() error {
		if !l.isChanging("log.a") || l.isChanging("log.b") {
			t.Errorf("got changes %v, want those of log.a", l.changing)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, after := l.compare(newestMessage{}); after == changed || l.isChanging("log.a") {
		t.Errorf("got change count %d and changes %v in progress, want another count than %d and none", after, l.changing, changed)
	}
}

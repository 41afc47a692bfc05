package store

import (
	"testing"
)

// Only changes that may concern the known message wait for a write that expects it.
func TestLastWrite_SeparatesOtherChanges(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(l *lastWrite, fn func() error) error
		waits  bool
	}{
		{"nothing", func(_ *lastWrite, fn func() error) error { return fn() }, false},
		{"its subject", func(l *lastWrite, fn func() error) error { return l.change("log.a", fn) }, true},
		{"all subjects", func(l *lastWrite, fn func() error) error { return l.change("log.>", fn) }, true},
		{"another subject", func(l *lastWrite, fn func() error) error { return l.change("log.b", fn) }, false},
		{"earlier messages", func(l *lastWrite, fn func() error) error { return l.removeBefore(5, fn) }, false},
		{"it, too", func(l *lastWrite, fn func() error) error { return l.removeBefore(6, fn) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			message := known{"log.a", 5, 0}
			l := &lastWrite{known: message, changing: map[string]int{}}
			err := tt.change(l, func() error {
				if free := l.order.TryLock(); free {
					l.order.Unlock()
					if tt.waits {
						t.Error("a write would not wait for the change")
					}
				} else if !tt.waits {
					t.Error("a write would wait for the change")
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if isKnown, _ := l.compare(message); isKnown == tt.waits {
				t.Errorf("known afterwards: got %v", isKnown)
			}
			if len(l.changing) != 0 {
				t.Errorf("got changes %v in progress, want none", l.changing)
			}
		})
	}
}

// A message that was written while its subject was changed is not known.
func TestLastWrite_NoticesChangesDuringWrite(t *testing.T) {
	l := &lastWrite{changing: map[string]int{}}
	_, changed := l.compare(known{})
	err := l.change("log.a", func() error {
		if !l.isChanging("log.a") || l.isChanging("log.b") {
			t.Errorf("got changes %v, want those of log.a", l.changing)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, after := l.compare(known{}); after == changed || l.isChanging("log.a") {
		t.Errorf("got %d changes that have ended, and %v, want one more and none", after, l.changing)
	}
}

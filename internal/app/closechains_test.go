package app

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/replicas"
	"github.com/caprouter/caprouter/internal/store"
)

func TestChainCloser_ClosesChainsOfEndedReplicas(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	a, b := replicas.Member{Name: "a", Owner: "a1"}, replicas.Member{Name: "b", Owner: "b1", Live: true}
	live, again := a, a
	live.Live, again.Owner = true, "a2"
	var closed []string
	var failure error
	k := newChainCloser(func(_ context.Context, name string) (int, error) {
		closed = append(closed, name)
		return 1, failure
	})
	for _, step := range []struct {
		what    string
		now     time.Time
		members []replicas.Member
		failure error
		want    string // chains that this step closes
		err     bool
	}{
		{"first seen ended", at(0), []replicas.Member{a, b}, nil, "", false},
		{"returns", at(30), []replicas.Member{live, b}, nil, "", false},
		{"ended again", at(40), []replicas.Member{a, b}, nil, "", false},
		{"grace period not over", at(90), []replicas.Member{a, b}, nil, "", false},
		{"another replica closes it", at(100), []replicas.Member{a, b}, store.ErrConflict, "a", false},
		{"the store fails", at(110), []replicas.Member{a, b}, errors.New("down"), "a", true},
		{"closed", at(120), []replicas.Member{a, b}, nil, "a", false},
		{"closed once", at(130), []replicas.Member{a, b}, nil, "", false},
		{"next process ends", at(140), []replicas.Member{again, b}, nil, "", false},
		{"next process closed", at(200), []replicas.Member{again, b}, nil, "a", false},
	} {
		closed, failure = nil, step.failure
		_, err := k.closeDead(t.Context(), step.members, step.now)
		if got := strings.Join(closed, ","); got != step.want || (err != nil) != step.err {
			t.Errorf("%s: got %q closed with %v, want %q", step.what, got, err, step.want)
		}
	}
}

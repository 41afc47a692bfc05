package main

import (
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"sync"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// typeProblem is the media type of a refusal.
const typeProblem = "application/problem+json"

// kind is what an answer is.
type kind uint8

const (
	unsent kind = iota // it was due, and its caller did not come to it
	good
	shed   // refused as it should be: with a code, and when to come again
	other  // an answer that is neither
	broken // no answer
	kinds  // how many there are
)

func (k kind) String() string {
	return [...]string{"not sent", "good", "shed", "other", "broken"}[k]
}

// reply is an answer as it came.
type reply struct {
	status int
	header http.Header
	body   []byte
	last   bool // the connection ends with it
}

// verdict is what is read of the body of an answer: of a problem the status and
// the code.
type verdict struct {
	Status int           `json:"status"`
	Code   contract.Code `json:"code"`
}

// classify says what an answer is, where a good one has the given status in its
// body. Of one that is neither good nor a proper refusal it says why.
func classify(r reply, want contract.Status) (k kind, why string) {
	switch r.status {
	case http.StatusOK:
		var got struct {
			Status contract.Status `json:"status"`
		}
		if err := strictjson.UnmarshalAllowUnknown(r.body, &got); err != nil {
			return other, fmt.Sprintf("200 with what cannot be read: %v", err)
		}
		if got.Status != want {
			return other, fmt.Sprintf("200 with the status %q, not %q: %.300s", got.Status, want, r.body)
		}
		return good, ""
	case http.StatusServiceUnavailable:
		return refusal(r, contract.CodeOverloaded)
	case http.StatusTooManyRequests:
		return refusal(r, contract.CodeRateLimited)
	}
	return other, fmt.Sprintf("%d: %.300s", r.status, r.body)
}

// refusal checks that an answer says all that the caller has to know.
func refusal(r reply, code contract.Code) (k kind, why string) {
	if seconds, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || seconds < 1 {
		return other, fmt.Sprintf("%d with Retry-After %q", r.status, r.header.Get("Retry-After"))
	}
	if media, _, err := mime.ParseMediaType(r.header.Get("Content-Type")); err != nil || media != typeProblem {
		return other, fmt.Sprintf("%d of the type %q", r.status, r.header.Get("Content-Type"))
	}
	var got verdict
	if err := strictjson.UnmarshalAllowUnknown(r.body, &got); err != nil {
		return other, fmt.Sprintf("%d with what cannot be read: %v", r.status, err)
	}
	if want := (verdict{Status: r.status, Code: code}); got != want {
		return other, fmt.Sprintf("%d with the problem %d %s, not %s", r.status, got.Status, cmp.Or(got.Code, "without a code"), code)
	}
	return shed, ""
}

// wrongs is all that is wrong, of which the first are named. Safe for several
// goroutines.
type wrongs struct {
	mu    sync.Mutex
	count int
	first []string
}

// mostNamed is how many are named.
const mostNamed = 20

func (w *wrongs) add(format string, values ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	if len(w.first) < mostNamed {
		w.first = append(w.first, fmt.Sprintf(format, values...))
	}
}

func (w *wrongs) all() (count int, first []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count, w.first
}

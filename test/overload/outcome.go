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

const typeProblem = "application/problem+json"

// outcome classifies what a caller received.
type outcome uint8

const (
	outcomeUnsent outcome = iota // due, but the caller had no time to send it
	outcomeGood
	outcomeShed    // rejected correctly: 503 or 429 with a code and Retry-After
	outcomeInvalid // neither good nor a correct rejection
	outcomeBroken  // no answer
	numOutcomes
)

func (k outcome) String() string {
	return [...]string{"not sent", "good", "shed", "other", "broken"}[k]
}

type response struct {
	status int
	header http.Header
	body   []byte
	closes bool // the server closes the connection
}

// problemBody contains the members of a problem (RFC 9457) that are checked.
type problemBody struct {
	Status int           `json:"status"`
	Code   contract.Code `json:"code"`
}

// classifyResponse returns the outcome of a response. A good one has the wanted status
// in its body. The reason is set for outcomeInvalid.
func classifyResponse(r response, want contract.Status) (k outcome, why string) {
	switch r.status {
	case http.StatusOK:
		var got struct {
			Status contract.Status `json:"status"`
		}
		if err := strictjson.UnmarshalAllowUnknown(r.body, &got); err != nil {
			return outcomeInvalid, fmt.Sprintf("200 with an invalid body: %v", err)
		}
		if got.Status != want {
			return outcomeInvalid, fmt.Sprintf("200 with the status %q, not %q: %.300s", got.Status, want, r.body)
		}
		return outcomeGood, ""
	case http.StatusServiceUnavailable:
		return checkRefusal(r, contract.CodeOverloaded)
	case http.StatusTooManyRequests:
		return checkRefusal(r, contract.CodeRateLimited)
	}
	return outcomeInvalid, fmt.Sprintf("%d: %.300s", r.status, r.body)
}

// checkRefusal checks that a rejection has all that a client needs to retry.
func checkRefusal(r response, code contract.Code) (k outcome, why string) {
	if seconds, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || seconds < 1 {
		return outcomeInvalid, fmt.Sprintf("%d with Retry-After %q", r.status, r.header.Get("Retry-After"))
	}
	if media, _, err := mime.ParseMediaType(r.header.Get("Content-Type")); err != nil || media != typeProblem {
		return outcomeInvalid, fmt.Sprintf("%d of the type %q", r.status, r.header.Get("Content-Type"))
	}
	var got problemBody
	if err := strictjson.UnmarshalAllowUnknown(r.body, &got); err != nil {
		return outcomeInvalid, fmt.Sprintf("%d with an invalid body: %v", r.status, err)
	}
	if want := (problemBody{Status: r.status, Code: code}); got != want {
		return outcomeInvalid, fmt.Sprintf("%d with the problem %d %s, not %s", r.status, got.Status, cmp.Or(got.Code, "without a code"), code)
	}
	return outcomeShed, ""
}

// failureLog counts failures and keeps the first ones. It is safe for concurrent use.
type failureLog struct {
	mu    sync.Mutex
	count int
	first []string
}

const maxListed = 20

func (w *failureLog) record(format string, values ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	if len(w.first) < maxListed {
		w.first = append(w.first, fmt.Sprintf(format, values...))
	}
}

func (w *failureLog) list() (count int, first []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count, w.first
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/test/internal/process"
)

const maxAnswerBytes = 4 << 20

const (
	routePath    = "/api/v1/route"
	requestsPath = "/api/v1/requests/"
)

// fakeCallers sends requests and records the answers.
type fakeCallers struct {
	ledger  *ledger
	current *currentRouter
}

// order is one request to submit.
type order struct {
	key  string // Idempotency-Key, or ""
	sync bool
	body []byte
}

// newOrder encodes an asynchronous request. A timeout of 0 is the default of the
// router.
func newOrder(prompt, key string, timeoutMS int, hold bool) order {
	inputs := map[string]json.RawMessage{}
	if hold {
		inputs[inputHold] = encodeJSON(true)
	}
	return encodeOrder(prompt, key, inputs, contract.Options{Mode: contract.ModeAsync, TimeoutMS: timeoutMS})
}

// newSyncOrder encodes a synchronous request.
func newSyncOrder(prompt, key string) order {
	o := encodeOrder(prompt, key, map[string]json.RawMessage{inputSync: encodeJSON(true)}, contract.Options{})
	o.sync = true
	return o
}

func encodeOrder(prompt, key string, inputs map[string]json.RawMessage, options contract.Options) order {
	if key != "" {
		inputs[inputKey] = encodeJSON(key)
	}
	return order{key: key, body: encodeJSON(contract.Request{Content: contract.Content{Prompt: prompt, Inputs: inputs}, Options: options})}
}

// submitOrder sends the order and records the answer. It returns false if the order
// may be sent again.
func (c *fakeCallers) submitOrder(ctx context.Context, o order) bool {
	ctx, cancel := context.WithTimeout(ctx, process.IOTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, publicURL+routePath, bytes.NewReader(o.body))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	if o.key != "" {
		req.Header.Set("Idempotency-Key", o.key)
	}
	resp, err := c.current.client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	// The status counts, even if reading the body fails.
	id, located := strings.CutPrefix(resp.Header.Get("Location"), requestsPath)
	if located && resp.StatusCode == http.StatusAccepted {
		c.ledger.recordAccepted(id)
		c.ledger.recordKey(o.key, id)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	switch {
	case err != nil:
		return false
	case resp.StatusCode == http.StatusAccepted && !located:
		c.ledger.recordUnexpected("", fmt.Sprintf("202 without a Location: %.200s", body))
	case resp.StatusCode == http.StatusAccepted, resp.StatusCode == http.StatusOK && (o.sync || o.key != ""):
		c.recordAnswer(o, body)
	case resp.StatusCode == http.StatusGone && o.key != "":
		c.ledger.recordExpired(o.key)
	case resp.StatusCode == http.StatusConflict && o.key != "", resp.StatusCode == http.StatusServiceUnavailable, resp.StatusCode == http.StatusTooManyRequests:
		return false
	default:
		c.ledger.recordUnexpected("", fmt.Sprintf("POST was answered %d: %.200s", resp.StatusCode, body))
	}
	return true
}

func (c *fakeCallers) recordAnswer(o order, body []byte) {
	resp, err := decodeResponse(body)
	if err != nil {
		c.ledger.recordUnexpected("", fmt.Sprintf("POST was answered with an invalid body: %v", err))
		return
	}
	c.ledger.recordAccepted(resp.RequestID)
	c.ledger.recordKey(o.key, resp.RequestID)
	c.ledger.recordResponse(resp.RequestID, resp, body)
}

func (c *fakeCallers) fetchRequest(ctx context.Context, id string) {
	status, resp, body := c.callRequest(ctx, "GET", http.MethodGet, id, "", http.StatusNotFound, http.StatusGone)
	switch status {
	case http.StatusOK:
		c.ledger.recordResponse(id, resp, body)
	case http.StatusNotFound, http.StatusGone:
		c.ledger.recordNotFound(id)
	}
}

// cancelRequest cancels a request. A request that has ended meanwhile is answered 409.
func (c *fakeCallers) cancelRequest(ctx context.Context, id string) {
	status, resp, _ := c.callRequest(ctx, "a cancel", http.MethodPost, id, "/cancel", http.StatusNotFound, http.StatusConflict)
	switch status {
	case http.StatusOK:
		c.ledger.recordCancelled(id, resp.Status)
	case http.StatusNotFound:
		c.ledger.recordNotFound(id)
	}
}

// callRequest calls a resource of a request. It returns the status and the body, with the
// response if the status is 200, or the status 0 if there is no valid answer. It records
// an invalid body, and a status that is neither 200, nor an expected one, nor that of an
// overloaded router.
func (c *fakeCallers) callRequest(
	ctx context.Context, name, method, id, suffix string, expected ...int,
) (status int, answer *contract.Response, body []byte) {
	ctx, cancel := context.WithTimeout(ctx, process.IOTimeout)
	defer cancel()
	resp, err := c.callResource(ctx, method, requestsPath+id+suffix, 0)
	if err != nil {
		return 0, nil, nil
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes)); err != nil {
		return 0, nil, nil
	}
	switch {
	case resp.StatusCode == http.StatusOK:
		if answer, err = decodeResponse(body); err != nil {
			c.ledger.recordUnexpected(id, fmt.Sprintf("%s was answered with an invalid body: %v", name, err))
			return 0, nil, nil
		}
	case resp.StatusCode == http.StatusServiceUnavailable, resp.StatusCode == http.StatusTooManyRequests:
	case !slices.Contains(expected, resp.StatusCode):
		c.ledger.recordUnexpected(id, fmt.Sprintf("%s was answered %d: %.200s", name, resp.StatusCode, body))
	}
	return resp.StatusCode, answer, body
}

// followEvents reads the events of a request after the last one that was seen.
func (c *fakeCallers) followEvents(ctx context.Context, id string) {
	last, finals, said := c.ledger.lastEventID(id), 0, contract.Status("")
	defer func() { c.ledger.recordStream(id, last, finals, said) }()
	resp, err := c.callResource(ctx, http.MethodGet, requestsPath+id+"/events", last)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		c.ledger.recordNotFound(id)
	}
	if resp.StatusCode != http.StatusOK {
		return
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxAnswerBytes)
	final := false
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			last, _ = strconv.ParseUint(value, 10, 64)
		case "event":
			final = value == string(contract.EventFinal)
		case "data":
			var ev contract.Event
			if final && strictjson.UnmarshalAllowUnknown([]byte(value), &ev) == nil && ev.Response != nil {
				finals, said = finals+1, ev.Response.Status
			}
		}
	}
}

func (c *fakeCallers) callResource(ctx context.Context, method, path string, lastEvent uint64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, publicURL+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	if lastEvent > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatUint(lastEvent, 10))
	}
	return c.current.client.Do(req)
}

func decodeResponse(body []byte) (*contract.Response, error) {
	var resp contract.Response
	if err := strictjson.UnmarshalAllowUnknown(body, &resp); err != nil {
		return nil, err
	}
	return &resp, nil
}

package workload

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

// Callers sends requests and records the answers.
type Callers struct {
	Ledger  *Ledger
	Routers *Routers
}

// Order is one request to submit.
type Order struct {
	key  string // Idempotency-Key, or ""
	sync bool
	body []byte
}

// NewOrder encodes an asynchronous request. A timeout of 0 is the default of the
// router.
func NewOrder(prompt, key string, timeoutMS int, hold bool) Order {
	inputs := map[string]json.RawMessage{}
	if hold {
		inputs[inputHold] = encodeJSON(true)
	}
	return encodeOrder(prompt, key, inputs, contract.Options{Mode: contract.ModeAsync, TimeoutMS: timeoutMS})
}

// NewSyncOrder encodes a synchronous request.
func NewSyncOrder(prompt, key string) Order {
	o := encodeOrder(prompt, key, map[string]json.RawMessage{inputSync: encodeJSON(true)}, contract.Options{})
	o.sync = true
	return o
}

func encodeOrder(prompt, key string, inputs map[string]json.RawMessage, options contract.Options) Order {
	if key != "" {
		inputs[inputKey] = encodeJSON(key)
	}
	return Order{key: key, body: encodeJSON(contract.Request{Content: contract.Content{Prompt: prompt, Inputs: inputs}, Options: options})}
}

// NewTurn encodes a synchronous request of a session. before is the prompt of the turn
// before, "" if there is none.
func NewTurn(session, prompt, before string) Order {
	inputs := map[string]json.RawMessage{inputSync: encodeJSON(true)}
	if before != "" {
		inputs[inputBefore] = encodeJSON(before)
	}
	return Order{sync: true, body: encodeJSON(contract.Request{SessionID: session, Content: contract.Content{Prompt: prompt, Inputs: inputs}})}
}

// SubmitOrder sends the order and records the answer. It returns false if the order
// may be sent again.
func (c *Callers) SubmitOrder(ctx context.Context, o Order) bool {
	ctx, cancel := context.WithTimeout(ctx, process.IOTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, PublicURL+routePath, bytes.NewReader(o.body))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	if o.key != "" {
		req.Header.Set("Idempotency-Key", o.key)
	}
	resp, err := c.Routers.Client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	// The status counts, even if reading the body fails.
	id, located := strings.CutPrefix(resp.Header.Get("Location"), requestsPath)
	if located && resp.StatusCode == http.StatusAccepted {
		c.Ledger.recordAccepted(id)
		c.Ledger.recordKey(o.key, id)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	switch {
	case err != nil:
		return false
	case resp.StatusCode == http.StatusAccepted && !located:
		c.Ledger.RecordUnexpected("", fmt.Sprintf("202 without a Location: %.200s", body))
	case resp.StatusCode == http.StatusAccepted, resp.StatusCode == http.StatusOK && (o.sync || o.key != ""):
		c.recordAnswer(o, body)
	case resp.StatusCode == http.StatusGone && o.key != "":
		c.Ledger.recordExpired(o.key)
	case resp.StatusCode == http.StatusConflict && o.key != "", resp.StatusCode == http.StatusServiceUnavailable, resp.StatusCode == http.StatusTooManyRequests:
		return false
	default:
		c.Ledger.RecordUnexpected("", fmt.Sprintf("POST was answered %d: %.200s", resp.StatusCode, body))
	}
	return true
}

func (c *Callers) recordAnswer(o Order, body []byte) {
	resp, err := decodeResponse(body)
	if err != nil {
		c.Ledger.RecordUnexpected("", fmt.Sprintf("POST was answered with an invalid body: %v", err))
		return
	}
	c.Ledger.recordAccepted(resp.RequestID)
	c.Ledger.recordKey(o.key, resp.RequestID)
	c.Ledger.recordResponse(resp.RequestID, resp, body)
	if o.sync && o.key == "" {
		c.Ledger.recordAnsweredFirst(resp.RequestID)
	}
}

// FetchRequest reads a request, and records the response.
func (c *Callers) FetchRequest(ctx context.Context, id string) {
	status, resp, body := c.callRequest(ctx, "GET", http.MethodGet, id, "", http.StatusNotFound, http.StatusGone)
	switch status {
	case http.StatusOK:
		c.Ledger.recordResponse(id, resp, body)
	case http.StatusNotFound, http.StatusGone:
		c.Ledger.recordNotFound(id)
	}
}

// CancelRequest cancels a request. A request that has ended meanwhile is answered 409.
func (c *Callers) CancelRequest(ctx context.Context, id string) {
	status, resp, _ := c.callRequest(ctx, "a cancel", http.MethodPost, id, "/cancel", http.StatusNotFound, http.StatusConflict)
	switch status {
	case http.StatusOK:
		c.Ledger.recordCancelled(id, resp.Status)
	case http.StatusNotFound:
		c.Ledger.recordNotFound(id)
	}
}

// callRequest calls a resource of a request. It returns the status and the body, with the
// response if the status is 200, or the status 0 if there is no valid answer. It records
// an invalid body, and a status that is neither 200, nor an expected one, nor that of an
// overloaded router.
func (c *Callers) callRequest(
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
			c.Ledger.RecordUnexpected(id, fmt.Sprintf("%s was answered with an invalid body: %v", name, err))
			return 0, nil, nil
		}
	case resp.StatusCode == http.StatusServiceUnavailable, resp.StatusCode == http.StatusTooManyRequests:
	case !slices.Contains(expected, resp.StatusCode):
		c.Ledger.RecordUnexpected(id, fmt.Sprintf("%s was answered %d: %.200s", name, resp.StatusCode, body))
	}
	return resp.StatusCode, answer, body
}

// FollowEvents reads the events of a request after the last one that was seen.
func (c *Callers) FollowEvents(ctx context.Context, id string) {
	last, finals, status := c.Ledger.lastEventID(id), 0, contract.Status("")
	defer func() { c.Ledger.recordStream(id, last, finals, status) }()
	resp, err := c.callResource(ctx, http.MethodGet, requestsPath+id+"/events", last)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		c.Ledger.recordNotFound(id)
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
				finals, status = finals+1, ev.Response.Status
			}
		}
	}
}

func (c *Callers) callResource(ctx context.Context, method, path string, lastEvent uint64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, PublicURL+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	if lastEvent > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatUint(lastEvent, 10))
	}
	return c.Routers.Client.Do(req)
}

func decodeResponse(body []byte) (*contract.Response, error) {
	var resp contract.Response
	if err := strictjson.UnmarshalAllowUnknown(body, &resp); err != nil {
		return nil, err
	}
	return &resp, nil
}

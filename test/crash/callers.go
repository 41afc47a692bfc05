package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// maxAnswerBytes bounds what is read of an answer.
const maxAnswerBytes = 4 << 20

// routePath and requestsPath are the places of the REST interface that are used.
const (
	routePath    = "/api/v1/route"
	requestsPath = "/api/v1/requests/"
)

// callers are the callers of a run: what they send, and what they see.
type callers struct {
	ledger *ledger
	door   *door
}

// order is one request to send.
type order struct {
	key   string // Idempotency-Key; "" = none
	body  []byte
	cycle int
}

// newOrder words a request. A timeout of 0 is the router's own.
func newOrder(prompt, key string, timeoutMS int, hold bool, cycle int) order {
	content := contract.Content{Prompt: prompt, Inputs: map[string]json.RawMessage{}}
	if key != "" {
		content.Inputs[inputKey] = encode(key)
	}
	if hold {
		content.Inputs[inputHold] = encode(true)
	}
	return order{key: key, cycle: cycle, body: encode(contract.Request{
		Content: content, Options: contract.Options{Mode: contract.ModeAsync, TimeoutMS: timeoutMS},
	})}
}

// post sends the order and books the answer. It reports whether that was the last
// word: an order with a key may be sent again until it is.
func (c *callers) post(ctx context.Context, o order) bool {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, publicURL+routePath, bytes.NewReader(o.body))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	if o.key != "" {
		req.Header.Set("Idempotency-Key", o.key)
	}
	resp, err := c.door.client.Do(req)
	if err != nil {
		c.ledger.posted(0)
		return false
	}
	defer resp.Body.Close()
	c.ledger.posted(resp.StatusCode)
	// The status is the promise, whatever becomes of the body.
	id, located := strings.CutPrefix(resp.Header.Get("Location"), requestsPath)
	if located && resp.StatusCode == http.StatusAccepted {
		c.ledger.promised(id, o.cycle)
		c.ledger.stands(o.key, id)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	switch {
	case err != nil:
		return false
	case resp.StatusCode == http.StatusAccepted && !located:
		c.ledger.wonder("", fmt.Sprintf("202 without a Location: %.200s", body))
	case resp.StatusCode == http.StatusAccepted, resp.StatusCode == http.StatusOK && o.key != "":
		c.answered(o, body)
	case resp.StatusCode == http.StatusConflict && o.key != "", resp.StatusCode == http.StatusServiceUnavailable, resp.StatusCode == http.StatusTooManyRequests:
		return false
	default:
		c.ledger.wonder("", fmt.Sprintf("POST was answered %d: %.200s", resp.StatusCode, body))
	}
	return true
}

// answered books the body of an answer to an order: how far its request is.
func (c *callers) answered(o order, body []byte) {
	resp, err := decode(body)
	if err != nil {
		c.ledger.wonder("", fmt.Sprintf("POST was answered with what cannot be read: %v", err))
		return
	}
	c.ledger.promised(resp.RequestID, o.cycle)
	c.ledger.stands(o.key, resp.RequestID)
	c.ledger.saw(resp.RequestID, resp, body)
}

// look asks for a request and books the answer.
func (c *callers) look(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	resp, err := c.get(ctx, requestsPath+id, 0)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	if err != nil {
		return
	}
	switch resp.StatusCode {
	case http.StatusOK:
		answer, err := decode(body)
		if err != nil {
			c.ledger.wonder(id, fmt.Sprintf("GET was answered with what cannot be read: %v", err))
			return
		}
		c.ledger.saw(id, answer, body)
	case http.StatusNotFound:
		c.ledger.gone(id)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
	default:
		c.ledger.wonder(id, fmt.Sprintf("GET was answered %d: %.200s", resp.StatusCode, body))
	}
}

// listen reads the events of a request, from where the last stream of it ended,
// until there are no more.
func (c *callers) listen(ctx context.Context, id string) {
	last, finals, said := c.ledger.lastEvent(id), 0, contract.Status("")
	defer func() { c.ledger.streamed(id, last, finals, said) }()
	resp, err := c.get(ctx, requestsPath+id+"/events", last)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		c.ledger.gone(id)
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

func (c *callers) get(ctx context.Context, path string, lastEvent uint64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, publicURL+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	if lastEvent > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatUint(lastEvent, 10))
	}
	return c.door.client.Do(req)
}

func decode(body []byte) (*contract.Response, error) {
	var resp contract.Response
	if err := strictjson.UnmarshalAllowUnknown(body, &resp); err != nil {
		return nil, err
	}
	return &resp, nil
}

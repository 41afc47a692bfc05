package tickets

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Webhook receives notices about tickets.
type Webhook struct {
	URL string
	// Secret signs the messages: whsec_ and base64, or any text, of at least 24
	// bytes.
	Secret llm.Secret
}

// minSecretBytes is the minimum of Standard Webhooks.
const minSecretBytes = 24

// secretPrefix marks a secret that is base64.
const secretPrefix = "whsec_"

// Limits of one message.
const (
	sendTimeout   = 15 * time.Second
	maxReplyBytes = 64 << 10 // read from a response, so that the connection can be reused
)

// webhookSender posts signed messages to one URL.
type webhookSender struct {
	url    string
	key    []byte
	client *http.Client
}

// newSender checks the webhook. The URL may be logged, so it must not contain a
// password; the texts of tickets must be encrypted in transit.
func newSender(w *Webhook, allowPlain bool) (*webhookSender, error) {
	u, err := url.Parse(w.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("tickets.webhook.url is not an absolute http or https URL, e.g. https://hooks.example/caprouter")
	case u.User != nil:
		return nil, errors.New("tickets.webhook.url must not contain a user name or password: messages are signed")
	case u.Scheme == "http" && !allowPlain && !egress.IsLoopback(u.Hostname()):
		return nil, fmt.Errorf("tickets.webhook.url sends to %s over plain http, so that others could read tickets: use https", u.Host)
	}
	key, err := signingKey(w.Secret.Reveal())
	if err != nil {
		return nil, err
	}
	transport := egress.NewTransport(egress.Unrestricted{}) // the operator chose the URL
	transport.ResponseHeaderTimeout = 10 * time.Second
	transport.IdleConnTimeout = 30 * time.Second
	transport.MaxIdleConns = 1
	client := egress.NewClient(transport)
	client.Timeout = sendTimeout
	return &webhookSender{url: w.URL, key: key, client: client}, nil
}

// Check returns the error that Open would return for this webhook. It sends nothing.
func (w *Webhook) Check(allowPlainHTTP bool) error {
	_, err := newSender(w, allowPlainHTTP)
	return err
}

func signingKey(secret string) ([]byte, error) {
	key := []byte(secret)
	if text, ok := strings.CutPrefix(secret, secretPrefix); ok {
		var err error
		if key, err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil, errors.New("the secret of tickets.webhook starts with whsec_, and the rest is not base64")
		}
	}
	if len(key) < minSecretBytes {
		return nil, fmt.Errorf("the secret of tickets.webhook has %d bytes, %d are needed: make one with `openssl rand -base64 32`", len(key), minSecretBytes)
	}
	return key, nil
}

// webhookMessage is the body: the event, and the facts of the ticket at the time of
// sending. The title is its only text of a request.
type webhookMessage struct {
	Type      string      `json:"type"`
	Timestamp time.Time   `json:"timestamp"` // when it happened
	Data      messageData `json:"data"`
}

type messageData struct {
	TicketID  string                `json:"ticket_id"`
	Tenant    string                `json:"tenant,omitempty"`
	Status    contract.TicketStatus `json:"status"`
	Title     string                `json:"title"`
	Count     int                   `json:"count"` // when it happened
	Callers   int                   `json:"callers"`
	CreatedAt time.Time             `json:"created_at"`
	LastAt    time.Time             `json:"last_at"`
	Note      string                `json:"note,omitempty"`
}

func messageOf(t *contract.Ticket, n *webhookNotice) *webhookMessage {
	return &webhookMessage{n.Event, n.At, messageData{
		TicketID: t.TicketID, Tenant: t.Tenant, Status: t.Status, Title: t.Title, Count: n.Count,
		Callers: t.Callers, CreatedAt: t.CreatedAt, LastAt: t.LastAt, Note: t.Note,
	}}
}

// errGone: the URL answered 410 and wants no more messages.
var errGone = errors.New("410 Gone")

// sendMessage posts a message; nil means that it was delivered.
func (s *webhookSender) sendMessage(ctx context.Context, id string, m *webhookMessage, now time.Time) error {
	body, err := strictjson.Marshal(m)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	at := strconv.FormatInt(now.Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "caprouter")
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", at)
	req.Header.Set("Webhook-Signature", signMessage(s.key, id, at, body))
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxReplyBytes) // the content does not matter
	switch {
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		return nil
	case resp.StatusCode == http.StatusGone:
		return errGone
	}
	return fmt.Errorf("answered %s", resp.Status)
}

// signMessage returns the signature of Standard Webhooks, version 1.
func signMessage(key []byte, id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

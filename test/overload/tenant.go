package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// tokenSecret signs the tokens of callers (HS256).
type tokenSecret string

func newTokenSecret() tokenSecret { return tokenSecret(rand.Text() + rand.Text()) }

// tenant is a group of callers with a token each.
type tenant struct {
	name   string
	addr   string
	tokens []string
}

func newTenant(name, addr string, callers int, secret tokenSecret) *tenant {
	t := &tenant{name: name, addr: addr}
	for i := range callers {
		t.tokens = append(t.tokens, secret.sign(name, fmt.Sprintf("%s-%d", name, i)))
	}
	return t
}

// sign returns a token for every scope and agent.
func (s tokenSecret) sign(tenant, subject string) string {
	now := time.Now().Unix()
	signed := encodeSegment(map[string]any{"alg": "HS256", "typ": "JWT", "kid": tokenKeyID}) + "." + encodeSegment(map[string]any{
		"iss": "overload", "aud": "caprouter", "sub": subject, "tenant": tenant, "jti": rand.Text(), "iat": now, "exp": now + 6*3600,
		"scope": "route:submit route:read agents:read tickets agent:*",
	})
	mac := hmac.New(sha256.New, []byte(s))
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func encodeSegment(members map[string]any) string {
	data, err := strictjson.Marshal(members)
	if err != nil {
		panic(err) // texts and numbers can be encoded
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// request formats a request of one of the callers. header lines end with CRLF.
func (t *tenant) request(caller int, method, path, header, body string) []byte {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%s", method, path, t.tokens[caller%len(t.tokens)], header)
	if method == "POST" && !strings.Contains(header, "Content-Type:") {
		text.WriteString("Content-Type: application/json\r\n")
	}
	fmt.Fprintf(&text, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return []byte(text.String())
}

// call sends one request of the first caller on a connection of its own.
func (t *tenant) call(ctx context.Context, method, path, header, body string) (response, error) {
	l := &connection{addr: t.addr}
	defer l.close()
	return l.roundTrip(ctx, t.request(0, method, path, header, body))
}

package auth

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// An operator sees the issuer of rejected tokens that is not configured, at most once a minute.
// Issuers that are configured in any way cause no line.
func TestVerify_LogsUnknownIssuer(t *testing.T) {
	fx := newVerifierFixture(t)
	var log bytes.Buffer
	fx.unknownIssuers.logger = slog.New(slog.NewTextHandler(&log, nil))
	unknown := newTestKey(t, "unknown", "EdDSA")
	send := func(issuer string) {
		t.Helper()
		fx.wantRejected(unknown.token(t, fx.claims().with("iss", quote(issuer))), unknownKey)
	}
	for _, issuer := range []string{idp, routerIssuer} {
		send(issuer)
	}
	if log.Len() > 0 {
		t.Fatalf("got a line about a configured issuer: %s", log.String())
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {unknownIssuerInterval - time.Second, 1}, {time.Second, 2}} {
		fx.now = fx.now.Add(step.after)
		send(idp + "/")
		if lines := strings.Count(log.String(), "\n"); lines != step.want {
			t.Errorf("%v later: got %d lines, want %d:\n%s", step.after, lines, step.want, log.String())
		}
	}
	if text := log.String(); !strings.Contains(text, "iss="+idp+"/ ") || !strings.Contains(text, `configured="[`+idp+" "+otherIDP+`]"`) {
		t.Errorf("got %s, want the issuer and the configured ones", text)
	}
}

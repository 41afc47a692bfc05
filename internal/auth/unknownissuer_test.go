package auth

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/loglimit"
)

// An operator sees the issuer of rejected tokens that is not configured, at most once a minute.
// Issuers that are configured in any way cause no line.
func TestVerify_LogsUnknownIssuer(t *testing.T) {
	fx := newVerifierFixture(t)
	var log bytes.Buffer
	fx.unknownIssuers.logger = slog.New(loglimit.NewHandler(slog.NewTextHandler(&log, nil)))
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
	for range 3 {
		send(idp + "/")
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 {
		t.Errorf("got %d lines, want 1:\n%s", lines, log.String())
	}
	if text := log.String(); !strings.Contains(text, "iss="+idp+"/ ") || !strings.Contains(text, `configured="[`+idp+" "+otherIDP+`]"`) {
		t.Errorf("got %s, want the issuer and the configured ones", text)
	}
}

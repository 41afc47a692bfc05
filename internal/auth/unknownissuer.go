package auth

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// unknownIssuerLog logs tokens whose issuer is not configured. A caller is not told which
// issuers are, so that an operator would not find out why the tokens of an identity provider
// are rejected whose "iss" differs from the configuration, for example by a slash at the end.
// The claim is not verified, so that anyone can cause a line: there is at most one a minute.
type unknownIssuerLog struct {
	logger     *slog.Logger // masks personal data and secrets
	configured []string

	mu   sync.Mutex
	last time.Time
}

// unknownIssuerInterval is the least time between two lines.
const unknownIssuerInterval = time.Minute

func (l *unknownIssuerLog) report(ctx context.Context, issuer string, now time.Time) {
	if len(l.configured) == 0 || !l.take(now) {
		return
	}
	l.logger.WarnContext(ctx, "a token is rejected because its issuer is not configured: iss must equal an issuer of auth.issuers exactly",
		"iss", issuer, "configured", l.configured)
}

// take reports whether a line may be logged now.
func (l *unknownIssuerLog) take(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() && now.Sub(l.last) < unknownIssuerInterval {
		return false
	}
	l.last = now
	return true
}

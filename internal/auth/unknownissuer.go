package auth

import (
	"context"
	"log/slog"

	"github.com/caprouter/caprouter/internal/loglimit"
)

// unknownIssuerLog logs tokens whose issuer is not configured. A caller is not told which
// issuers are, so that an operator would not find out why the tokens of an identity provider
// are rejected whose "iss" differs from the configuration, for example by a slash at the end.
// The claim is not verified, so that anyone can cause a line: package loglimit bounds them.
type unknownIssuerLog struct {
	logger     *slog.Logger // masks personal data and secrets
	configured []string
}

func (l *unknownIssuerLog) report(ctx context.Context, issuer string) {
	if len(l.configured) == 0 {
		return
	}
	l.logger.WarnContext(loglimit.With(ctx, "unknown issuer"), "a token is rejected because its issuer is not configured: iss must equal an issuer of auth.issuers exactly",
		"iss", issuer, "configured", l.configured)
}

package httptarget

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/caprouter/caprouter/internal/egress"
)

// describeDialError returns the reason for a failed connection without the
// address.
func describeDialError(err error) string {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "its host name cannot be resolved"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its TLS certificate is not trusted"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "it does not speak TLS"
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to its host"
	case isTimeout(err):
		return "it could not be connected to in time"
	}
	return "the connection failed"
}

// isBlocked reports whether the guard rejected the address.
func isBlocked(err error) bool {
	_, ok := errors.AsType[*egress.BlockedError](err)
	return ok
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout()
}

// isConnectionLoss distinguishes a lost connection from an invalid reply. For a
// connection closed before the first byte of a reply, the transport returns an
// error that is only recognizable by its text.
func isConnectionLoss(err error) bool {
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return true
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		err.Error() == "http: server closed idle connection"
}

// parseRetryAfter parses seconds or a date (RFC 9110, section 10.2.3).
func parseRetryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}

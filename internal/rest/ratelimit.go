package rest

import (
	"strconv"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// setLimit says how a limit stands (IETF draft-ietf-httpapi-ratelimit-headers-10):
// q of the policy come back within w seconds; r are left, and there is one more
// in t seconds.
func setLimit(x *exchange, l *contract.Limit) {
	b := make([]byte, 0, 48)
	b = strconv.AppendQuote(b, l.Policy)
	name := len(b)
	b = append(b, ";q="...)
	b = strconv.AppendInt(b, int64(l.Quota), 10)
	b = append(b, ";w="...)
	b = strconv.AppendInt(b, seconds(l.Window), 10)
	x.set("Ratelimit-Policy", string(b))
	b = append(b[:name], ";r="...)
	b = strconv.AppendInt(b, int64(max(l.Remaining, 0)), 10)
	b = append(b, ";t="...)
	b = strconv.AppendInt(b, seconds(l.Reset), 10)
	x.set("Ratelimit", string(b))
}

// retryAfter is how long to wait, in seconds, at least one.
func retryAfter(l *contract.Limit) string {
	if l == nil {
		return "1"
	}
	return strconv.FormatInt(max(seconds(l.Reset), 1), 10)
}

// seconds rounds up: who comes at the time that was told must not be refused
// again.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

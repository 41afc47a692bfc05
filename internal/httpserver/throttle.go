package httpserver

import (
	"context"
	"log/slog"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/loglimit"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/throttle"
)

// errThrottled rejects a request of a tenant that sends more than others while the
// processors are overloaded.
var errThrottled = &contract.Error{
	Code:    contract.CodeOverloaded,
	Message: "the router is busy, and this tenant sends more requests than others; try again later",
}

// tenantThrottle delays ClassWork requests of the tenants that send the most while the
// processors are overloaded.
type tenantThrottle struct {
	throttle *throttle.Throttle[quota.Owner]
	meter    Meter
	log      *slog.Logger
}

func newTenantThrottle(cfg *Config) *tenantThrottle {
	return &tenantThrottle{
		throttle: throttle.New[quota.Owner](cfg.MaxSchedulingDelay, throttle.NewDelayMeter()),
		meter:    cfg.Meter, log: cfg.Logger,
	}
}

// A request costs one more for each costBytes of its body, because most work, for example
// masking, classification and encryption, grows with it. Greater bodies contain inputs,
// which are not classified.
const (
	costBytes        = 8 << 10
	maxCountedBytes  = 256 << 10
	unknownBodyBytes = 64 << 10 // of a chunked body
)

// costOf returns the cost of a request whose body has this length; -1 = not known.
func costOf(bodyBytes int64) int {
	if bodyBytes < 0 {
		bodyBytes = unknownBodyBytes
	}
	return 1 + int(min(bodyBytes, maxCountedBytes)/costBytes)
}

// wait delays a request of the caller, or returns an error. The request holds no permit, and
// its body is not read yet.
func (t *tenantThrottle) wait(ctx context.Context, caller *contract.Caller, bodyBytes int64) error {
	owner := quota.OwnerOf(caller)
	waited, ok := t.throttle.Wait(ctx, owner, costOf(bodyBytes))
	if ok && waited == 0 {
		return nil
	}
	if !ok && ctx.Err() != nil {
		return errThrottled // not read: the caller has cancelled the request
	}
	t.meter.RecordThrottled(!ok)
	t.log.WarnContext(loglimit.With(ctx, "throttled"),
		"the processors are overloaded: requests of the tenant that sends the most are delayed or rejected",
		"tenant", owner.String(), "delay_ms", waited.Milliseconds(), "rejected", !ok)
	if !ok {
		return errThrottled
	}
	return nil
}

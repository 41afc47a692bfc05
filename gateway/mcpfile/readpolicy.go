package mcpfile

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/gateway/redaction"
)

// readResilience reads the circuit breaker and the health check.
func (o *object) readResilience(form format, s *Server) {
	if breaker := o.getObject("breaker"); breaker != nil {
		s.Breaker = Breaker{Failures: get[int](breaker, "failures"), OpenMS: breaker.getMS("open_ms")}
		if s.Breaker.Failures < 0 {
			breaker.errorf(breaker.at+"/failures", "failures is %d: it must not be negative", s.Breaker.Failures)
		}
		breaker.checkUnknown(form.foreign)
	}
	if health := o.getObject("health"); health != nil {
		s.Health = Health{IntervalMS: health.getMS("interval_ms")}
		health.checkUnknown(form.foreign)
	}
}

// maxRPS bounds a rate limit, so that it stays a number that can be computed with.
const maxRPS = 1e6

func (o *object) readRateLimit() *RateLimit {
	limit := o.getObject("rate_limit")
	if limit == nil {
		return nil
	}
	l := &RateLimit{RPS: get[float64](limit, "rps"), Burst: get[int](limit, "burst")}
	if !(l.RPS > 0 && l.RPS <= maxRPS) {
		limit.errorf(limit.at, "rate_limit needs rps, a number of calls per second from above 0 to %d", int(maxRPS))
	}
	if l.Burst < 0 || l.Burst > maxRPS {
		limit.errorf(limit.at+"/burst", "burst is %d: it must be from 0 to %d", l.Burst, int(maxRPS))
	}
	limit.checkUnknown(false)
	return l
}

func (o *object) readRedaction() []redaction.Rule {
	var rules []redaction.Rule
	for i, raw := range get[[]json.RawMessage](o, "redaction") {
		at := o.at + "/redaction/" + strconv.Itoa(i)
		rule := o.readObject(at, raw)
		if rule == nil {
			continue
		}
		r := redaction.Rule{
			Path: get[string](rule, "path"), Key: get[string](rule, "key"), Pattern: get[string](rule, "pattern"),
			Kinds: get[[]string](rule, "kinds"), In: get[[]string](rule, "in"), Replace: get[string](rule, "replace"),
		}
		rule.checkUnknown(false)
		if _, err := redaction.Compile([]redaction.Rule{r}); err != nil {
			o.errorf(at, "%v", err)
		}
		rules = append(rules, r)
	}
	return rules
}

func (o *object) readTimeouts() Timeouts {
	var t Timeouts
	if timeouts := o.getObject("timeouts"); timeouts != nil {
		t = Timeouts{Connect: timeouts.getMS("connect"), Call: timeouts.getMS("call"), Probe: timeouts.getMS("probe")}
		timeouts.checkUnknown(false)
	}
	if name, raw := o.find("timeout", "timeout_ms"); raw != nil {
		if t.Call != 0 {
			o.errorf(o.at+"/"+name, "%s and timeouts.call mean the same: remove one of them", name)
		}
		t.Call = o.getMS("timeout", "timeout_ms")
	}
	if t.Call > 0 && t.Call < minCallMS {
		o.warnf(o.at, "server %q has a timeout of %d milliseconds; if seconds are meant, write %d", o.at[strings.LastIndexByte(o.at, '/')+1:], t.Call, t.Call*1000)
	}
	return t
}

// minCallMS is a timeout that was probably written in seconds if it is shorter.
const minCallMS = 100

const maxRetries = 10

func (o *object) readRetry() *Retry {
	retry := o.getObject("retry")
	if retry == nil {
		return nil
	}
	r := &Retry{
		Retries: get[int](retry, "retries"), Backoff: get[string](retry, "backoff"),
		MinMS: retry.getMS("min_ms"), MaxMS: retry.getMS("max_ms"), Idempotent: get[*bool](retry, "idempotent"),
	}
	if r.Retries < 0 || r.Retries > maxRetries {
		retry.errorf(retry.at+"/retries", "retries is %d: it must be from 0 to %d", r.Retries, maxRetries)
	}
	if r.Backoff != "" && r.Backoff != "exponential" && r.Backoff != "fixed" {
		retry.errorf(retry.at+"/backoff", "backoff %q is not supported; known are exponential and fixed", r.Backoff)
	}
	if r.MaxMS != 0 && r.MaxMS < r.MinMS {
		retry.errorf(retry.at+"/max_ms", "max_ms is less than min_ms")
	}
	retry.checkUnknown(false)
	return r
}

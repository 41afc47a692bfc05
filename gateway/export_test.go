package gateway

import (
	"context"
	"time"
)

// WithWait returns the configuration with another way to wait before the next attempt to
// connect.
func (c Config) WithWait(fn func(ctx context.Context, d time.Duration)) Config {
	c.wait = fn
	return c
}

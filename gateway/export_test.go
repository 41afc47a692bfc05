package gateway

import (
	"context"
	"time"
)

// WithWait replaces the function that waits before the next attempt to connect.
func (c Config) WithWait(fn func(ctx context.Context, d time.Duration)) Config {
	c.wait = fn
	return c
}

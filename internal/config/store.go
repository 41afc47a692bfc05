package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/egress"
)

// Store specifies the durable store and its retention.
type Store struct {
	URL        string     `yaml:"url"`  // "" = embedded, in data_dir; nats://host:port,… = external servers of one cluster
	Sync       string     `yaml:"sync"` // always, or an interval such as 100ms
	Retention  Retention  `yaml:"retention"`
	Encryption Encryption `yaml:"encryption"`
	// TenantShare is the part of the store that one tenant may use, or one caller
	// without a tenant. The one caller of auth.mode none may use all of it.
	TenantShare float64 `yaml:"tenant_share"`
	// Replication is the number of external servers that keep each stream.
	Replication int `yaml:"replication"`
}

// Encryption names the keys of stored contents; without either, the file content.key
// in data_dir is used, and made.
type Encryption struct {
	KeyEnv  string `yaml:"key_env"`  // environment variable with the keys
	KeyFile string `yaml:"key_file"` // or the file, readable by its owner only
}

// Retention bounds the stored data in time (90d, 12h) and in bytes (10GiB).
type Retention struct {
	Requests  string `yaml:"requests"`  // asynchronous requests with their answers
	Decisions string `yaml:"decisions"` // contents of the audit log: prompts, decisions, answers
	Audit     string `yaml:"audit"`     // the audit log without contents
	MaxBytes  string `yaml:"max_bytes"` // of the whole store
}

// Audit specifies how requests are recorded.
type Audit struct {
	Required bool `yaml:"required"` // reject requests that cannot be recorded
	// Outcome specifies whether a caller waits until its response is recorded.
	Outcome string `yaml:"outcome" validate:"oneof=background wait"`
}

// OutcomeInBackground is the value of audit.outcome for which callers do not wait.
const OutcomeInBackground = "background"

// Tickets specifies the tickets of policy C.
type Tickets struct {
	Webhook Webhook `yaml:"webhook"`
}

// Webhook specifies the receiver of ticket notifications.
type Webhook struct {
	URL       string `yaml:"url"`        // "" = none
	SecretEnv string `yaml:"secret_env"` // environment variable with the signing secret
}

func defaultStoreConfig() Store {
	return Store{
		Sync:        syncAlways,
		Retention:   Retention{Requests: "30d", Decisions: "90d", Audit: "365d", MaxBytes: "10GiB"},
		TenantShare: 0.25,
		Replication: 1,
	}
}

// syncAlways forces every write to disk before it is acknowledged.
const syncAlways = "always"

// The bounds of the values. A request may be open for a day, so it must be stored longer.
const (
	minRequestRetention = 48 * time.Hour
	minRetention        = time.Hour
	minStoreBytes       = 64 << 20
	maxSyncInterval     = 10 * time.Second
)

func (c *Store) validate() error {
	r := &c.Retention
	return errors.Join(
		c.validateURL(),
		c.validateReplication(),
		c.validateSync(),
		checkMinDuration("store.retention.requests", r.Requests, minRequestRetention, "48h: a request may be open for a day"),
		checkMinDuration("store.retention.decisions", r.Decisions, minRetention, "1h"),
		checkMinDuration("store.retention.audit", r.Audit, max(minRetention, Duration(r.Decisions)), "as long as store.retention.decisions"),
		c.validateBytes(),
		c.validateShare(),
		c.Encryption.validate(),
	)
}

func (c *Store) validateShare() error {
	if !(c.TenantShare >= 0.001 && c.TenantShare <= 1) {
		return fmt.Errorf("store.tenant_share is %v: write the part of the store that one tenant may use, from 0.001 to 1 (0.25)", c.TenantShare)
	}
	return nil
}

func (c *Encryption) validate() error {
	if c.KeyEnv != "" && c.KeyFile != "" {
		return errors.New("store.encryption: name one of key_env and key_file, or neither")
	}
	return checkVariableName("store.encryption.key_env", "key", c.KeyEnv)
}

func (c *Store) validateURL() error {
	if c.URL == "" {
		return nil
	}
	for one := range strings.SplitSeq(c.URL, ",") {
		if _, ok := parseURL(one, "nats", "tls"); !ok {
			return errors.New("store.url must be nats://host:port or tls://host:port, several of them separated by commas, or left out for the embedded store")
		}
	}
	return nil
}

func (c *Store) validateReplication() error {
	if c.Replication < 1 || c.Replication > 5 {
		return fmt.Errorf("store.replication is %d: write the number of servers that keep each stream, from 1 to 5 (3)", c.Replication)
	}
	if c.Replication > 1 && c.URL == "" {
		return errors.New("store.replication needs store.url: an embedded store has one copy")
	}
	return nil
}

func (c *Store) validateSync() error {
	if c.Sync == syncAlways {
		return nil
	}
	if d, err := time.ParseDuration(c.Sync); err != nil || d <= 0 || d > maxSyncInterval {
		return fmt.Errorf("store.sync is %q: write always, or how often, up to %s (100ms)", c.Sync, maxSyncInterval)
	}
	return nil
}

func (c *Store) validateBytes() error {
	if n, err := parseSize(c.Retention.MaxBytes); err != nil || n < minStoreBytes {
		return fmt.Errorf("store.retention.max_bytes is %q: write a size from 64MiB on (10GiB)", c.Retention.MaxBytes)
	}
	return nil
}

// SyncInterval returns 0 for "always".
func (c *Store) SyncInterval() time.Duration {
	d, _ := time.ParseDuration(c.Sync) // validated; "always" is not a duration
	return d
}

// MaxBytes returns Retention.MaxBytes as a number.
func (c *Store) MaxBytes() int64 {
	n, _ := parseSize(c.Retention.MaxBytes) // validated
	return n
}

func checkMinDuration(key, text string, least time.Duration, words string) error {
	d, err := parseDuration(text)
	if err != nil {
		return fmt.Errorf("%s is %q: write a time like 90d or 12h", key, text)
	}
	if d < least {
		return fmt.Errorf("%s is %q: it must be at least %s", key, text, words)
	}
	return nil
}

// Duration returns the duration, 0 if the text is not valid.
func Duration(text string) time.Duration {
	d, _ := parseDuration(text)
	return d
}

// parseDuration parses a duration of time.ParseDuration, or whole days (90d).
func parseDuration(text string) (time.Duration, error) {
	days, ok := strings.CutSuffix(text, "d")
	if !ok {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of days", text)
	}
	return time.Duration(n) * 24 * time.Hour, nil
}

// parseSize parses a number of bytes, KiB, MiB, GiB or TiB.
func parseSize(text string) (int64, error) {
	digits, shift := text, 0
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if n, ok := strings.CutSuffix(text, unit); ok {
			digits, shift = strings.TrimSpace(n), 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > (1<<62)>>shift {
		return 0, fmt.Errorf("%q is not a size", text)
	}
	return n << shift, nil
}

// validatePublicURL checks the base URL of callbacks. Agents send the token of their
// task there.
func validatePublicURL(text string, allowPlain bool) error {
	if text == "" {
		return nil
	}
	u, ok := parseURL(text, "http", "https")
	if !ok || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return errors.New("public_url must be http(s)://host[:port][/path], or left out where agents reach the listen address")
	}
	if u.Scheme == "http" && !allowPlain && !egress.IsLoopback(u.Hostname()) {
		return errors.New("public_url is another host over plain http, where the tokens of agents could be read: use https, or set dispatch.allow_plain_http: true")
	}
	return nil
}

func (c *Webhook) validate() error {
	if c.URL == "" {
		return nil
	}
	if _, ok := parseURL(c.URL, "http", "https"); !ok {
		return errors.New("tickets.webhook.url must be http(s)://host[:port]/path")
	}
	if c.SecretEnv == "" {
		return errors.New("tickets.webhook.secret_env must name the variable with the secret: announcements are signed")
	}
	return checkVariableName("tickets.webhook.secret_env", "secret", c.SecretEnv)
}

package app

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"

	"github.com/caprouter/caprouter/internal/egress"
)

// leastSecret is how many bytes package tickets wants of a secret. A test holds
// what is said here to what Start does.
const leastSecret = 24

// diagnoseWebhook says whether tickets could be announced: serve does not start
// with an announcement that it could not sign.
func diagnoseWebhook(cfg *Config, lookup func(string) (string, bool)) Finding {
	f := Finding{Check: "tickets", Level: LevelFail}
	hook := &cfg.Tickets.Webhook
	if hook.URL == "" {
		f.Level, f.Detail = LevelOK, "kept, and announced to nobody"
		return f
	}
	u, err := url.Parse(hook.URL)
	switch {
	case err != nil || u.User != nil:
		f.Detail, f.Fix = "tickets.webhook.url holds a user name or a password", "leave them out: announcements are signed"
		return f
	case u.Scheme == "http" && !cfg.Dispatch.AllowPlainHTTP && !egress.Loopback(u.Hostname()):
		f.Detail = fmt.Sprintf("tickets.webhook.url leads to %s over plain http, where tickets could be read", u.Host)
		f.Fix = "use https, or set dispatch.allow_plain_http: true"
		return f
	}
	secret, _ := lookup(hook.SecretEnv)
	if secret == "" {
		f.Detail = fmt.Sprintf("the variable %s, which tickets.webhook.secret_env names, is not set", hook.SecretEnv)
		f.Fix = fmt.Sprintf("export %s=…; openssl rand -base64 32 makes one", hook.SecretEnv)
		return f
	}
	key := []byte(secret)
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if key, err = base64.StdEncoding.DecodeString(text); err != nil {
			f.Detail = hook.SecretEnv + " starts with whsec_ and goes on with something that is not base64"
			f.Fix = "take the secret as it was made, or make one with openssl rand -base64 32"
			return f
		}
	}
	if len(key) < leastSecret {
		f.Detail = fmt.Sprintf("the secret in %s has %d bytes, and %d are needed", hook.SecretEnv, len(key), leastSecret)
		f.Fix = "make one with openssl rand -base64 32"
		return f
	}
	f.Level, f.Detail = LevelOK, "announced to "+u.Host+", signed"
	return f
}

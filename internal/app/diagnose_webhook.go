package app

import (
	"fmt"
	"net/url"

	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/tickets"
)

// diagnoseWebhook checks that ticket notifications can be signed, without which serve
// does not start.
func diagnoseWebhook(cfg *Config, lookup func(string) (string, bool)) Finding {
	f := Finding{Check: "tickets", Level: LevelFail}
	hook := &cfg.Tickets.Webhook
	if hook.URL == "" {
		f.Level, f.Detail = LevelOK, "kept, and announced to nobody"
		return f
	}
	secret, _ := lookup(hook.SecretEnv)
	if secret == "" {
		f.Detail = fmt.Sprintf("the variable %s, which tickets.webhook.secret_env names, is not set", hook.SecretEnv)
		f.Fix = fmt.Sprintf("export %s=…; openssl rand -base64 32 makes one", hook.SecretEnv)
		return f
	}
	webhook := &tickets.Webhook{URL: hook.URL, Secret: llm.NewSecret(secret)}
	if err := webhook.Check(cfg.Dispatch.AllowPlainHTTP); err != nil {
		f.Detail, f.Fix = err.Error(), "mend tickets.webhook; openssl rand -base64 32 makes a secret"
		return f
	}
	f.Level, f.Detail = LevelOK, "announced, signed"
	if u, err := url.Parse(hook.URL); err == nil {
		f.Detail = "announced to " + u.Host + ", signed"
	}
	return f
}

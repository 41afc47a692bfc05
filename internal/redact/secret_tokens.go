package redact

import (
	"strings"
)

// tokenShape is the form of a vendor's tokens: a prefix and a minimum number of
// letters, digits, "-" and "_".
type tokenShape struct {
	prefix    string
	minLength int
	extra     string // further bytes that are part of the token
}

const base64Bytes = "+/="

// Shapes with the same first byte must be adjacent.
var tokenShapes = [...]tokenShape{
	{"A3-", 28, ""},              // 1Password
	{"AGE-SECRET-KEY-1", 58, ""}, // age
	{"AIza", 30, ""},             // Google
	{"AKCp", 60, ""},             // Artifactory
	{"AQVN", 35, ""},             // Yandex
	{"ATATT3", 60, "="},          // Atlassian
	{"CLOJARS_", 40, ""},         // Clojars
	{"EAA", 100, ""},             // Facebook
	{"EZAK", 40, ""},
	{"EZTK", 40, ""}, // EasyPost
	{"FLWSECK", 16, ""},
	{"FLWPUBK", 16, ""}, // Flutterwave
	{"GOCSPX-", 20, ""}, // Google OAuth
	{"LTAI", 16, ""},    // Alibaba
	{"NRAK-", 20, ""},
	{"NRJS-", 16, ""},
	{"NRII-", 20, ""},         // New Relic
	{"PMAK-", 40, ""},         // Postman
	{"ZXlK", 60, base64Bytes}, // a JWT in base64
	{"api_org_", 30, ""},      // Hugging Face
	{"cmVmd", 55, ""},         // Artifactory
	{"dapi", 32, ""},          // Databricks
	{"dckr_pat_", 20, ""},     // Docker Hub
	{"dop_v1_", 32, ""},
	{"doo_v1_", 32, ""},
	{"dor_v1_", 32, ""}, // DigitalOcean
	{"duffel_", 40, ""}, // Duffel
	{"fio-u-", 40, ""},  // Frame.io
	{"fo1_", 40, ""},
	{"fm1r_", 60, base64Bytes},
	{"fm2_", 60, base64Bytes}, // Fly.io
	{"github_pat_", 20, ""},   // GitHub
	{"ghp_", 20, ""},
	{"gho_", 20, ""},
	{"ghu_", 20, ""},
	{"ghs_", 20, ""},
	{"ghr_", 20, ""},
	{"glpat-", 16, "."},
	{"glptt-", 20, ""},
	{"gldt-", 20, ""},
	{"glrt-", 16, ""}, // GitLab
	{"glft-", 16, ""},
	{"glagent-", 20, ""},
	{"glsoat-", 16, ""},
	{"gloas-", 20, ""},
	{"glsa_", 20, ""},
	{"glc_", 32, base64Bytes},    // Grafana
	{"gsk_", 20, ""},             // Groq
	{"hf_", 20, ""},              // Hugging Face
	{"ico-", 30, ""},             // Infracost
	{"lin_api_", 20, ""},         // Linear
	{"npm_", 20, ""},             // npm
	{"nvapi-", 20, ""},           // NVIDIA
	{"ntn_", 20, ""},             // Notion
	{"nfp_", 30, ""},             // Netlify
	{"ops_eyJ", 60, base64Bytes}, // 1Password
	{"p8e-", 30, ""},             // Adobe
	{"pypi-", 20, ""},            // PyPI
	{"pplx-", 20, ""},            // Perplexity
	{"pnu_", 30, ""},             // Prefect
	{"pscale_tkn_", 20, "=."},
	{"pscale_oauth_", 20, "=."},
	{"pscale_pw_", 20, "=."}, // PlanetScale
	{"pul-", 40, ""},         // Pulumi
	{"rk_live_", 16, ""},
	{"rk_prod_", 16, ""},
	{"rk_test_", 16, ""},  // Stripe
	{"rdme_", 60, ""},     // ReadMe
	{"rubygems_", 40, ""}, // RubyGems
	{"r8_", 30, ""},       // Replicate
	{"sk_live_", 16, ""},
	{"sk_prod_", 16, ""},
	{"sk_test_", 16, ""}, // Stripe
	{"sk-", 20, ""},      // OpenAI, Anthropic and compatible services
	{"shpat_", 20, ""},
	{"shpca_", 20, ""},
	{"shppa_", 20, ""},
	{"shpss_", 20, ""}, // Shopify
	{"shippo_live_", 30, ""},
	{"shippo_test_", 30, ""}, // Shippo
	{"sntrys_", 40, base64Bytes},
	{"sntryu_", 40, ""}, // Sentry
	{"sq0atp-", 20, ""},
	{"sq0csp-", 20, ""},         // Square
	{"s-s4t2", 40, ""},          // 42
	{"tfp_", 40, "."},           // Typeform
	{"tk-us-", 40, ""},          // Scalingo
	{"tskey-", 20, ""},          // Tailscale
	{"whsec_", 20, base64Bytes}, // webhook secrets
	{"xoxa-", 10, ""},
	{"xoxb-", 10, ""},
	{"xoxe-", 10, ""},
	{"xoxo-", 10, ""}, // Slack
	{"xoxp-", 10, ""},
	{"xoxr-", 10, ""},
	{"xoxs-", 10, ""},
	{"xapp-", 10, ""},
	{"xai-", 20, ""},     // xAI
	{"xkeysib-", 60, ""}, // Brevo
}

// dottedShapes have prefixes that end in "." or "~", which also ends a run of
// token bytes.
var dottedShapes = [...]tokenShape{
	{"SG.", 16, "."},                     // SendGrid
	{"hvs.", 20, "."}, {"hvb.", 60, "."}, // Vault
	{"ya29.", 20, "."},    // Google access tokens
	{"xoxe.", 60, "."},    // Slack
	{"dt0c01.", 20, "."},  // Dynatrace
	{"atlasv1.", 40, "."}, // Terraform
	{"sha256~", 40, ""},   // OpenShift
}

// maxRead bounds how much of a long run is examined, so that many prefixes do
// not cause quadratic time.
const maxRead = 256

// shapeIndex contains the positions of the shapes in tokenShapes by first byte.
var shapeIndex = indexShapes()

func indexShapes() (index [256]struct{ from, to uint8 }) {
	for i, s := range tokenShapes {
		at := &index[s.prefix[0]]
		if at.to == 0 {
			at.from = uint8(i)
		}
		at.to = uint8(i + 1)
	}
	return index
}

// tokenEnd returns the end of a token of the shape that starts at i, in the run or
// just before it, or 0.
func (s tokenShape) tokenEnd(r *tokenRun, i int) int {
	if !strings.HasPrefix(r.text[i:], s.prefix) {
		return 0
	}
	end := r.end
	if s.extra == "." {
		end = r.findDottedEnd()
	} else if s.extra != "" {
		end = s.pastExtra(r.text[:min(len(r.text), end+maxRead)], end)
	}
	body := r.text[min(end, i+len(s.prefix)):end]
	if len(body) < s.minLength || !hasMixedClasses(body[:min(len(body), maxRead)]) || !s.mayStartAt(r, i) {
		return 0
	}
	if s.extra != "" && s.extra != "." {
		end = s.pastExtra(r.text, end)
	}
	return end
}

// pastExtra returns the end of the bytes of the token from i on.
func (s tokenShape) pastExtra(text string, i int) int {
	for i < len(text) && (isTokenByte(text[i]) || strings.IndexByte(s.extra, text[i]) >= 0) {
		i++
	}
	return i
}

// mayStartAt reports whether a token may start at i. Directly after a letter or digit,
// the prefix and what follows it must not be part of a word: pnpm_config_x.
func (s tokenShape) mayStartAt(r *tokenRun, i int) bool {
	if b := byteAt(r.text, i-1); !isLetter(b) && !isDigit(b) {
		return true
	}
	n := len(s.prefix)
	if s.prefix[n-1] == '-' {
		n-- // needs a longer prefix, because more words end like that
	} else if s.prefix[n-1] != '_' {
		return false
	}
	body := r.text[i+len(s.prefix):]
	return n >= 4 && (s.prefix[0] == 'x' || !strings.ContainsAny(body[:min(len(body), 12)], "-_"))
}

// hasMixedClasses reports whether s mixes digits and letters, or cases:
// sk-learn-compatible-estimators is not a key.
func hasMixedClasses(s string) bool {
	digits, small, capital := 0, 0, 0
	for i := range len(s) {
		switch b := s[i]; {
		case isDigit(b):
			digits++
		case isLetter(b) && b >= 'a':
			small++
		case isLetter(b):
			capital++
		}
	}
	return digits > 0 && small+capital > 0 || small > 0 && capital > 2
}

// maxParts bounds the dotted parts of a token. No vendor uses more, and each
// part is read again for each of the runs before it.
const maxParts = 4

// tokenRun is a run of token bytes that ends at end. The dotted parts after it
// are scanned only once.
type tokenRun struct {
	text            string
	end             int
	scanned         bool
	jwtEnd, dotsEnd int
}

// findJWTEnd returns the end of the JWT whose header ends the run, or 0.
func (r *tokenRun) findJWTEnd() int {
	r.scanParts()
	return r.jwtEnd
}

// findDottedEnd returns the end of the run including dotted parts.
func (r *tokenRun) findDottedEnd() int {
	r.scanParts()
	return r.dotsEnd
}

func (r *tokenRun) scanParts() {
	if r.scanned {
		return
	}
	r.scanned, r.dotsEnd = true, r.end
	at, parts := r.end, 1 // of the JWT
	for n := 0; n < maxParts && byteAt(r.text, at) == '.'; n++ {
		end := pastToken(r.text, at+1)
		if end > at+1 && r.dotsEnd == at {
			r.dotsEnd = end
		}
		if end == at+1 && parts != 2 { // an unsigned token ends in a dot
			break
		}
		at = end
		parts++
	}
	if parts >= 3 {
		r.jwtEnd = at
	}
}

// pastToken returns the end of the token bytes at i.
func pastToken(text string, i int) int {
	for i < len(text) && isTokenByte(text[i]) {
		i++
	}
	return i
}

package redact

import (
	"strings"
)

// tokenShape is the form of a vendor's tokens: a prefix and a minimum number of
// letters, digits, "-" and "_".
type tokenShape struct {
	prefix    string
	minLength int
	dots      bool // "." is part of the token
}

// Shapes with the same first byte must be adjacent.
var tokenShapes = [...]tokenShape{
	{prefix: "AIza", minLength: 30},               // Google
	{prefix: "GOCSPX-", minLength: 20},            // Google OAuth
	{prefix: "dapi", minLength: 32},               // Databricks
	{prefix: "dop_v1_", minLength: 32},            // DigitalOcean
	{prefix: "github_pat_", minLength: 20},        // GitHub
	{prefix: "ghp_", minLength: 20},               //
	{prefix: "gho_", minLength: 20},               //
	{prefix: "ghu_", minLength: 20},               //
	{prefix: "ghs_", minLength: 20},               //
	{prefix: "ghr_", minLength: 20},               //
	{prefix: "glpat-", minLength: 16, dots: true}, // GitLab
	{prefix: "glsa_", minLength: 20},              // Grafana
	{prefix: "gsk_", minLength: 20},               // Groq
	{prefix: "hf_", minLength: 20},                // Hugging Face
	{prefix: "lin_api_", minLength: 20},           // Linear
	{prefix: "npm_", minLength: 20},               // npm
	{prefix: "nvapi-", minLength: 20},             // NVIDIA
	{prefix: "ntn_", minLength: 20},               // Notion
	{prefix: "pypi-", minLength: 20},              // PyPI
	{prefix: "pplx-", minLength: 20},              // Perplexity
	{prefix: "rk_live_", minLength: 16},           // Stripe
	{prefix: "sk_live_", minLength: 16},           //
	{prefix: "sk_test_", minLength: 16},           //
	{prefix: "sk-", minLength: 20},                // OpenAI, Anthropic and compatible services
	{prefix: "shpat_", minLength: 20},             // Shopify
	{prefix: "whsec_", minLength: 20},             // webhook secrets
	{prefix: "xoxa-", minLength: 10},              // Slack
	{prefix: "xoxb-", minLength: 10},              //
	{prefix: "xoxe-", minLength: 10},              //
	{prefix: "xoxp-", minLength: 10},              //
	{prefix: "xoxr-", minLength: 10},              //
	{prefix: "xoxs-", minLength: 10},              //
	{prefix: "xapp-", minLength: 10},              //
	{prefix: "xai-", minLength: 20},               // xAI
}

// dottedShapes have prefixes that end in a dot, which also ends a run of token
// bytes.
var dottedShapes = [...]tokenShape{
	{prefix: "SG.", minLength: 16, dots: true},   // SendGrid
	{prefix: "hvs.", minLength: 20, dots: true},  // Vault
	{prefix: "ya29.", minLength: 20, dots: true}, // Google access tokens
}

// maxRead bounds how much of a long run is examined, so that many prefixes do
// not cause quadratic time.
const maxRead = 256

// shapesStartingWith returns the shapes whose prefix starts with b.
func shapesStartingWith(b byte) []tokenShape {
	for i := range tokenShapes {
		if tokenShapes[i].prefix[0] != b {
			continue
		}
		n := i + 1
		for n < len(tokenShapes) && tokenShapes[n].prefix[0] == b {
			n++
		}
		return tokenShapes[i:n]
	}
	return nil
}

// tokenEnd returns the end of a token of the shape that starts at i, in the run
// or just before it, or 0.
func (s tokenShape) tokenEnd(r *tokenRun, i int) int {
	if !strings.HasPrefix(r.text[i:], s.prefix) {
		return 0
	}
	end := r.end
	if s.dots {
		end = r.findDottedEnd()
	}
	body := r.text[min(end, i+len(s.prefix)):end]
	if len(body) < s.minLength || !hasMixedClasses(body[:min(len(body), maxRead)]) {
		return 0
	}
	return end
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
	followed        bool
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
	if r.followed {
		return
	}
	r.followed, r.dotsEnd = true, r.end
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

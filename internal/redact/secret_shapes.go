package redact

import "strings"

// shape is what the tokens of one maker look like: what they start with, and how
// many letters, digits, "-" and "_" follow at least.
type shape struct {
	prefix string
	least  int
	dots   bool // "." belongs to it, too
}

// shapes with the same first byte stand together.
var shapes = [...]shape{
	{prefix: "AIza", least: 30},               // Google
	{prefix: "GOCSPX-", least: 20},            // Google OAuth
	{prefix: "dapi", least: 32},               // Databricks
	{prefix: "dop_v1_", least: 32},            // DigitalOcean
	{prefix: "github_pat_", least: 20},        // GitHub
	{prefix: "ghp_", least: 20},               //
	{prefix: "gho_", least: 20},               //
	{prefix: "ghu_", least: 20},               //
	{prefix: "ghs_", least: 20},               //
	{prefix: "ghr_", least: 20},               //
	{prefix: "glpat-", least: 16, dots: true}, // GitLab
	{prefix: "glsa_", least: 20},              // Grafana
	{prefix: "gsk_", least: 20},               // Groq
	{prefix: "hf_", least: 20},                // Hugging Face
	{prefix: "lin_api_", least: 20},           // Linear
	{prefix: "npm_", least: 20},               // npm
	{prefix: "nvapi-", least: 20},             // NVIDIA
	{prefix: "ntn_", least: 20},               // Notion
	{prefix: "pypi-", least: 20},              // PyPI
	{prefix: "pplx-", least: 20},              // Perplexity
	{prefix: "rk_live_", least: 16},           // Stripe
	{prefix: "sk_live_", least: 16},           //
	{prefix: "sk_test_", least: 16},           //
	{prefix: "sk-", least: 20},                // OpenAI, Anthropic and those who do as they do
	{prefix: "shpat_", least: 20},             // Shopify
	{prefix: "whsec_", least: 20},             // webhook secrets
	{prefix: "xoxa-", least: 10},              // Slack
	{prefix: "xoxb-", least: 10},              //
	{prefix: "xoxe-", least: 10},              //
	{prefix: "xoxp-", least: 10},              //
	{prefix: "xoxr-", least: 10},              //
	{prefix: "xoxs-", least: 10},              //
	{prefix: "xapp-", least: 10},              //
	{prefix: "xai-", least: 20},               // xAI
}

// dotted are those whose prefix ends in a dot, where a run of letters ends.
var dotted = [...]shape{
	{prefix: "SG.", least: 16, dots: true},   // SendGrid
	{prefix: "hvs.", least: 20, dots: true},  // Vault
	{prefix: "ya29.", least: 20, dots: true}, // Google access tokens
}

// maxRead bounds how far a long run is read to judge it, so that a text full of
// prefixes is not read again for each of them.
const maxRead = 256

// shapesBy returns the shapes that may start with b.
func shapesBy(b byte) []shape {
	for i := range shapes {
		if shapes[i].prefix[0] != b {
			continue
		}
		n := i + 1
		for n < len(shapes) && shapes[n].prefix[0] == b {
			n++
		}
		return shapes[i:n]
	}
	return nil
}

// end returns where the token of the shape that starts at i, in the run or just
// before it, ends; 0 when it is none.
func (s shape) end(r *run, i int) int {
	if !strings.HasPrefix(r.text[i:], s.prefix) {
		return 0
	}
	end := r.end
	if s.dots {
		end = r.dotted()
	}
	body := r.text[min(end, i+len(s.prefix)):end]
	if len(body) < s.least || !mixed(body[:min(len(body), maxRead)]) {
		return 0
	}
	return end
}

// mixed reports whether a digit stands among letters, or capitals among small
// ones: sk-learn-compatible-estimators is no key.
func mixed(s string) bool {
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

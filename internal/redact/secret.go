package redact

import "strings"

// findSecrets appends keys, tokens and passwords: private keys, tokens of known
// shapes, and values after a name of a secret.
func findSecrets(text string, found []span) []span {
	found = findPrivateKeys(text, found)
	found = findTokens(text, found)
	return findNamedSecrets(text, found)
}

const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "
	pemWord  = "PRIVATE KEY"
)

// findPrivateKeys appends PEM blocks of private keys. If the last line is
// missing, a block extends to the end of the text.
func findPrivateKeys(text string, found []span) []span {
	for i := 0; ; {
		begin := strings.Index(text[i:], pemBegin)
		if begin < 0 {
			return found
		}
		begin += i
		i = begin + len(pemBegin)
		if !strings.Contains(text[i:min(len(text), i+40)], pemWord) {
			continue
		}
		end := len(text)
		if e := strings.Index(text[i:], pemEnd); e >= 0 {
			end = i + e + len(pemEnd)
			if dashes := strings.Index(text[end:min(len(text), end+60)], "-----"); dashes >= 0 {
				end += dashes + len("-----")
			}
		}
		found = append(found, span{start: begin, end: end})
		i = end
	}
}

// webhooks are the beginnings of URLs whose rest is a secret.
var webhooks = [...]string{
	"hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/",
	"webhook.office.com/webhookb2/", "outlook.office.com/webhook/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/",
}

// maxWebhook bounds the bytes before the long part of a webhook's secret.
const maxWebhook = 64

// webhookSecret returns the secret of the webhook URL that contains the run of token
// bytes at i.
func webhookSecret(text string, i int) (span, bool) {
	from := max(0, i-maxWebhook)
	if !strings.Contains(text[from:i], "hook") {
		return span{}, false
	}
	for _, w := range webhooks {
		n := strings.LastIndex(text[from:i], w)
		if n < 0 {
			continue
		}
		start := from + n + len(w)
		end := start
		for end < len(text) && (isTokenByte(text[end]) || strings.IndexByte("/@.%~+=", text[end]) >= 0) {
			end++
		}
		for strings.IndexByte("./", text[end-1]) >= 0 {
			end--
		}
		if end > i && hasMixedClasses(text[start:min(end, start+maxRead)]) {
			return span{start: start, end: end}, true
		}
	}
	return span{}, false
}

// minToken is the minimum length of a token with a known shape.
const minToken = 16

// findTokens appends tokens of known shapes. A run of minToken token bytes
// includes every minToken-th byte of the text, so the other bytes need not be
// read.
func findTokens(text string, found []span) []span {
	for i := minToken - 1; i < len(text); {
		if !isTokenByte(text[i]) {
			i += minToken
			continue
		}
		start, end := i, i+1
		for start > 0 && isTokenByte(text[start-1]) {
			start--
		}
		for end < len(text) && isTokenByte(text[end]) {
			end++
		}
		if end-start >= minToken {
			if s, ok := findTokenIn(text, start, end); ok {
				found = append(found, s)
				end = s.end
			}
		}
		i = end + minToken - 1 // the next run starts at end+1 or later
	}
	return found
}

func isTokenByte(b byte) bool { return isWordOrDigit(b) || b == '-' }

// findTokenIn returns the first token with a known shape in text[start:end].
func findTokenIn(text string, start, end int) (span, bool) {
	r := tokenRun{text: text, end: end}
	if byteAt(text, start-1) == '/' {
		if s, ok := webhookSecret(text, start); ok {
			return s, true
		}
	}
	if b := byteAt(text, start-1); b == '.' || b == '~' {
		for _, s := range dottedShapes {
			if i := start - len(s.prefix); strings.HasSuffix(text[:start], s.prefix) && !isWordOrDigit(byteAt(text, i-1)) {
				if e := s.tokenEnd(&r, i); e > 0 {
					return span{start: i, end: e}, true
				}
			}
		}
	}
	for i := start; i+minToken <= end; i++ {
		for _, s := range tokenShapes[shapeIndex[text[i]].from:shapeIndex[text[i]].to] {
			if e := s.tokenEnd(&r, i); e > 0 {
				return span{start: i, end: e}, true
			}
		}
		if strings.HasPrefix(text[i:end], "eyJ") {
			if e := r.findJWTEnd(); e > 0 && (i == start || !isWordOrDigit(text[i-1]) || text[i-1] == '_' || strings.HasPrefix(text[end:], ".eyJ")) {
				return span{start: i, end: e}, true
			}
		}
		if i > start && text[i-1] != '-' && text[i-1] != '_' {
			continue
		}
		if isAccessKey(text[i:end]) && (i+20 == end) {
			return span{start: i, end: end}, true
		}
	}
	if hintBefore(text, start, secretHint) == hintPositive && isRandom(text[start:end]) {
		return span{start: start, end: tokenShape{extra: base64Bytes}.pastExtra(text, end)}, true
	}
	return span{}, false
}

// isAccessKey reports whether s is an AWS access key id.
func isAccessKey(s string) bool {
	if len(s) != 20 {
		return false
	}
	switch s[:4] {
	case "AKIA", "ASIA", "AROA", "AIDA", "AGPA", "ABIA", "ACCA":
	default:
		return false
	}
	for i := range len(s) {
		if !isDigit(s[i]) && ('A' > s[i] || s[i] > 'Z') {
			return false
		}
	}
	return true
}

// isRandom reports whether s looks random: at least 20 characters with letters,
// digits and case mixed.
func isRandom(s string) bool {
	if len(s) < 20 {
		return false
	}
	changes, digits := 0, 0
	for i := 1; i < len(s); i++ {
		if isDigit(s[i]) {
			digits++
		}
		if isDigit(s[i]) != isDigit(s[i-1]) || isLetter(s[i]) && isLetter(s[i-1]) && (s[i]^s[i-1])&0x20 != 0 {
			changes++
		}
	}
	return digits > 0 && changes*5 >= len(s)
}

func secretHint(word string) wordHint {
	switch word {
	case "key", "keys", "token", "tokens", "secret", "secrets", "password", "credential", "credentials", "apikey", "passphrase", "senha", "chave", "contraseña", "clave", "passwort", "密码", "密钥":
		return hintPositive
	case "commit", "sha", "hash", "checksum", "digest", "id", "uuid":
		return hintNegative
	}
	return hintNone
}

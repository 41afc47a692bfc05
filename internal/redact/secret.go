package redact

import "strings"

// findSecrets appends keys, tokens and passwords: those whose shape a maker of
// them is known for, private keys, and what stands behind a word that names one.
func findSecrets(text string, found []span) []span {
	found = findPrivateKeys(text, found)
	found = findTokens(text, found)
	return findNamed(text, found)
}

const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "
	pemWord  = "PRIVATE KEY"
)

// findPrivateKeys appends PEM blocks of private keys, to the end of the text
// where the last line is missing.
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

// minToken is the length of the shortest token that is known by its shape.
const minToken = 16

// findTokens appends the tokens of known shapes. A run of 16 letters, digits,
// "-" and "_" holds every 16th byte of the text, so the others need not be read.
func findTokens(text string, found []span) []span {
	for i := minToken - 1; i < len(text); {
		if !isToken(text[i]) {
			i += minToken
			continue
		}
		start, end := i, i+1
		for start > 0 && isToken(text[start-1]) {
			start--
		}
		for end < len(text) && isToken(text[end]) {
			end++
		}
		if end-start >= minToken {
			if s, ok := tokenIn(text, start, end); ok {
				found = append(found, s)
				end = s.end
			}
		}
		i = end + minToken - 1 // the next run starts at end+1 at the earliest
	}
	return found
}

func isToken(b byte) bool { return isWord(b) || b == '-' }

// tokenIn returns the first token of a known shape in the run text[start:end].
func tokenIn(text string, start, end int) (span, bool) {
	r := run{text: text, end: end}
	if byteAt(text, start-1) == '.' {
		for _, s := range dotted {
			if i := start - len(s.prefix); strings.HasSuffix(text[:start], s.prefix) && !isWord(byteAt(text, i-1)) {
				if e := s.end(&r, i); e > 0 {
					return span{start: i, end: e}, true
				}
			}
		}
	}
	for i := start; i+minToken <= end; i++ {
		if i > start && text[i-1] != '-' && text[i-1] != '_' {
			continue
		}
		if strings.HasPrefix(text[i:end], "eyJ") {
			if e := r.jwt(); e > 0 {
				return span{start: i, end: e}, true
			}
		}
		for _, s := range shapesBy(text[i]) {
			if e := s.end(&r, i); e > 0 {
				return span{start: i, end: e}, true
			}
		}
		if isAccessKey(text[i:end]) && (i+20 == end) {
			return span{start: i, end: end}, true
		}
	}
	if near(text, start, secretWords) == says && isRandom(text[start:end]) {
		return span{start: start, end: end}, true
	}
	return span{}, false
}

// isAccessKey reports the id of an AWS key.
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

// isRandom reports what nobody would write as a name: 20 or more characters,
// letters and digits mixed all through.
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

func secretWords(word string) verdict {
	switch word {
	case "key", "keys", "token", "tokens", "secret", "secrets", "password", "credential", "credentials", "apikey", "passphrase", "senha", "chave", "contraseña", "clave", "passwort", "密码", "密钥":
		return says
	case "commit", "sha", "hash", "checksum", "digest", "id", "uuid":
		return denies
	}
	return silent
}

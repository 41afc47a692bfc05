package redact

import "strings"

// strength is how sure a name is that a secret stands behind it.
type strength int

const (
	noSecret strength = iota
	weak              // key, token: of many things
	strong            // password
	cookies           // the header: pairs of a name and a value
)

// maxName bounds the bytes of a name that are read.
const maxName = 48

// nameBefore reports what the name that ends before position i promises. One of
// two words counts, too: api key.
func nameBefore(text string, i int) strength {
	for i > 0 && strings.IndexByte(" \t\"'`\\)", text[i-1]) >= 0 {
		i--
	}
	end := i
	for i > 0 && end-i < maxName && isName(text[i-1]) {
		i--
	}
	if s := named(text[i:end]); s != noSecret || i == end || i == 0 || text[i-1] != ' ' {
		return s
	}
	for i--; i > 0 && end-i < maxName && isLetter(text[i-1]); {
		i--
	}
	return named(text[i:end])
}

func isName(b byte) bool { return isToken(b) || b == '.' || b >= 0x80 }

// named reports what a name promises, by how it ends: DB_PASSWORD, clientSecret,
// password2.
func named(name string) strength {
	var buf [maxName]byte
	n := 0
	for i := range min(len(name), maxName) {
		if b := name[i]; b != '_' && b != '-' && b != '.' && b != ' ' {
			if 'A' <= b && b <= 'Z' {
				b |= 0x20
			}
			buf[n] = b
			n++
		}
	}
	for n > 0 && isDigit(buf[n-1]) {
		n--
	}
	s := string(buf[:n])
	switch {
	case s == "pwd", s == "pass", strings.HasSuffix(name, "_PASS"), strings.HasSuffix(name, "_PWD"):
		return strong
	case s == "authorization", s == "proxyauthorization":
		return weak
	case strings.HasSuffix(s, "cookie"):
		return cookies
	}
	for _, word := range strongNames {
		if strings.HasSuffix(s, word) {
			return strong
		}
	}
	for _, word := range weakNames {
		if strings.HasSuffix(s, word) {
			return weak
		}
	}
	return noSecret
}

var (
	strongNames = [...]string{
		"password", "passwd", "passphrase", "passcode", "passwords", "dbpass", "userpwd", "passwort", "senha", "contraseña", "contrasena", "motdepasse", "密码",
	}
	weakNames = [...]string{
		"secret", "token", "apikey", "accesskey", "secretkey", "privatekey", "authkey", "accountkey", "signingkey", "encryptionkey",
		"credential", "credentials", "secrets", "apikeys", "密钥",
	}
)

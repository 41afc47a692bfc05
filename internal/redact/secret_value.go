package redact

import (
	"strings"
)

// isPlausible reports whether v can be a secret, and not a type, a variable, a
// word of a sentence or a placeholder. separator is the byte before v, as in
// assignedValue, or ">" for an XML element; next is the byte after it.
func isPlausible(v string, name nameStrength, quoted bool, separator, next byte) bool {
	if len(v) < minValue || isFiller(v) || isTemplate(v) {
		return false
	}
	if !quoted && (next == '(' || next == '[' || next == '>' && isTemplate(strings.TrimSuffix(v, "-"))) { // $this->password
		return false
	}
	digits, letters, others := countClasses(v)
	switch {
	case name == nameWeak: // tokens contain no space
		return len(v) >= 8 && digits > 0 && (letters > 0 || len(v) >= minToken) && (separator != ',' || quoted || len(v) >= minToken) && (others == 0 || len(v) >= 16 || quoted) && strings.IndexByte(v, ' ') < 0
	case separator == ' ':
		return len(v) >= 6 && letters > 0 && digits+others > 0 && digits+countCapitals(v) > 0
	case separator == '>': // no sentences
		return digits > 0 || strings.IndexByte(v, ' ') < 0
	case quoted:
		return true
	case strings.HasPrefix(v, "0x") && len(v) <= len("0x12345678"): // numeric constant
		return false
	case digits == 0 && letters == len(v):
		return separator == '=' && next != '.'
	case digits == 0 && others > 0 && separator == ':':
		return strings.ContainsAny(v, "!@#$%^&*+=?~")
	case digits == 0:
		return strings.IndexByte(v, '.') < 0 // settings.password
	}
	return true
}

// isMemberSecret reports whether the whole value of a JSON member is a secret
// because of the member's name. It may be short and simple, because a member
// contains nothing else.
func isMemberSecret(name, v string) bool {
	name = strings.TrimRight(name, " :=*?")
	switch strengthOf(name[max(0, len(name)-maxName):]) {
	case nameStrong:
		return strings.TrimSpace(v) != "" && !isFiller(v) && !isTemplate(v)
	case nameWeak:
		return isPlausible(v, nameWeak, true, ':', '"')
	case nameCookie:
		return strings.IndexByte(v, '=') > 0 && !isTemplate(v)
	}
	return false
}

// countClasses counts digits, letters and other bytes.
func countClasses(v string) (digits, letters, others int) {
	for i := range len(v) {
		switch b := v[i]; {
		case isDigit(b):
			digits++
		case isLetter(b):
			letters++
		default:
			others++
		}
	}
	return digits, letters, others
}

func countCapitals(v string) int {
	n := 0
	for i := range len(v) {
		if 'A' <= v[i] && v[i] <= 'Z' {
			n++
		}
	}
	return n
}

// isFiller reports whether v is a dummy or empty value.
func isFiller(v string) bool {
	if strings.Trim(v, "*") == "" || strings.Trim(v, "xX") == "" || strings.Trim(v, ".") == "" {
		return true
	}
	var buf [maxWord]byte
	switch lowerWord(buf[:0], v) {
	case "true", "false", "null", "none", "nil", "undefined", "string", "str", "text", "bool", "bytes", "required", "optional",
		"<redacted>", "redacted", "hidden", "masked", "password", "passwd", "secret", "token", "changed", "expired", "wrong", "invalid", "reset", "empty", "missing", "varchar", "integer":
		return true
	}
	return false
}

// templates are the delimiters of template expressions. Longer opening
// delimiters come first.
var templates = [...]struct{ open, end string }{
	{"${", "}"}, {"{{", "}}"}, {"#{", "}"}, {"%{", "}"}, {"$(", ")"}, {"%(", ")s"}, {"<%=", "%>"}, {"<", ">"}, {"{", "}"}, {"[", "]"},
}

// isTemplate reports whether v consists only of templates, such as ${VAR},
// {{var}}, <your key> and $VAR, or is a regular expression for passwords.
func isTemplate(v string) bool {
	if len(v) > 2 && v[0] == '^' && v[len(v)-1] == '$' {
		return true
	}
	found := false
	for v != "" {
		n := templateEnd(v)
		switch {
		case n > 0:
			found = true
			v = v[n:]
		case found && strings.IndexByte(":/@.-_", v[0]) >= 0: // ${USER}:${PASSWORD}
			v = v[1:]
		default:
			return false
		}
	}
	return found
}

// templateEnd returns the end of the template at the start of v, or 0.
func templateEnd(v string) int {
	for _, t := range templates {
		if !strings.HasPrefix(v, t.open) {
			continue
		}
		from := len(t.open)
		n := strings.Index(v[from:], t.end)
		if n <= 0 || t.open == "{" && strings.ContainsAny(v[:from+n], decimalDigits) || !isTemplateName(v[from:from+n]) {
			return 0
		}
		return from + n + len(t.end)
	}
	return variableEnd(v)
}

const decimalDigits = "0123456789"

// isTemplateName reports whether s is a name inside a template: words, with
// characters for calls and defaults, but no others, which are more likely in
// passwords.
func isTemplateName(s string) bool {
	for i := range len(s) {
		if b := s[i]; !isNameByte(b) && strings.IndexByte(" :|()'\",?/\\+=", b) < 0 {
			return false
		}
	}
	return true
}

// variableEnd returns the end of the variable at the start of v, or 0: $HOME,
// $db.password. A mix of lower-case letters and digits may be a password that
// starts with "$".
func variableEnd(v string) int {
	if len(v) < 2 || v[0] != '$' || !isLetter(v[1]) && v[1] != '_' {
		return 0
	}
	end := 1
	for end < len(v) && (isWordOrDigit(v[end]) || v[end] == '.' || v[end] == ':') {
		end++
	}
	digits, letters, _ := countClasses(v[:end])
	if digits > 0 && countCapitals(v[:end]) < letters {
		return 0
	}
	return end
}

// nameStrength is how strongly a name implies a secret value.
type nameStrength int

const (
	nameNone   nameStrength = iota
	nameWeak                // key, token: also other meanings
	nameStrong              // password
	nameCookie              // header with name=value pairs
)

// maxName bounds the bytes of a name.
const maxName = 48

// strengthBefore returns the strength of the name that ends before i. A name may have
// two words: api key. typed reports whether a type follows the name: token string.
func strengthBefore(text string, i int) (s nameStrength, typed bool) {
	for i > 0 && strings.IndexByte(" \t\"'`\\)", text[i-1]) >= 0 {
		i--
	}
	end := i
	for i > 0 && end-i < maxName && isNameByte(text[i-1]) {
		i--
	}
	if s := strengthOf(text[i:end]); s != nameNone || i == end || i == 0 {
		return s, false
	}
	if word := text[i:end]; word == "value" || isType(word) {
		for stop := max(0, i-maxWord); i > stop && strings.IndexByte(" \t\r\n\"'`\\:,/<>-*&[]", text[i-1]) >= 0; {
			i--
		}
		end = i
		for i > 0 && end-i < maxName && isNameByte(text[i-1]) {
			i--
		}
		return strengthOf(text[i:end]), word != "value"
	}
	if text[i-1] != ' ' {
		return nameNone, false
	}
	for i--; i > 0 && end-i < maxName && isLetter(text[i-1]); {
		i--
	}
	return strengthOf(text[i:end]), false
}

// isType reports whether the word is a type of texts in a programming language.
func isType(word string) bool {
	switch word {
	case "string", "String", "str", "text", "byte", "char", "varchar", "NSString":
		return true
	}
	return false
}

func isNameByte(b byte) bool { return isTokenByte(b) || b == '.' || b >= 0x80 }

// strengthOf returns the strength of a name by its suffix: DB_PASSWORD,
// clientSecret, password2.
func strengthOf(name string) nameStrength {
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
	s := strings.TrimSuffix(string(buf[:n]), "string")
	switch {
	case s == "pwd", s == "pass", strings.HasSuffix(name, "_PASS"), strings.HasSuffix(name, "_PWD"):
		return nameStrong
	case s == "authorization", s == "proxyauthorization":
		return nameWeak
	case strings.HasSuffix(s, "cookie"):
		return nameCookie
	}
	for _, word := range strongNames {
		if strings.HasSuffix(s, word) {
			return nameStrong
		}
	}
	for _, word := range weakNames {
		if strings.HasSuffix(s, word) {
			return nameWeak
		}
	}
	return nameNone
}

var (
	strongNames = [...]string{
		"password", "passwd", "passphrase", "passcode", "passwords", "dbpass", "userpwd", "passwort", "senha", "contraseña", "contrasena", "motdepasse", "密码",
	}
	weakNames = [...]string{
		"secret", "token", "apikey", "accesskey", "secretkey", "privatekey", "authkey", "accountkey", "signingkey", "encryptionkey",
		"credential", "credentials", "creds", "secrets", "apikeys", "dockercfg", "dockerconfigjson", "密钥",
	}
)

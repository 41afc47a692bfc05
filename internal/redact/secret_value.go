package redact

import "strings"

// plausible reports whether a value could be a secret: neither the name of a
// type or a variable, nor a word of a sentence, nor one of our placeholders.
func plausible(v string, name strength, quoted bool, by, next byte) bool {
	if len(v) < minValue || isFiller(v) || isTemplate(v) {
		return false
	}
	if !quoted && (next == '(' || next == '[' || next == '>' && isTemplate(strings.TrimSuffix(v, "-"))) { // $this->password
		return false
	}
	digits, letters, others := tally(v)
	switch {
	case name == weak: // no token holds a blank
		return len(v) >= 8 && digits > 0 && letters > 0 && (others == 0 || len(v) >= 16 || quoted) && strings.IndexByte(v, ' ') < 0
	case by == ' ':
		return len(v) >= 6 && letters > 0 && digits+others > 0 && digits+capitals(v) > 0
	case by == '>': // a sentence about a password is none
		return digits > 0 || strings.IndexByte(v, ' ') < 0
	case quoted:
		return true
	case strings.HasPrefix(v, "0x") && len(v) <= len("0x12345678"): // a constant
		return false
	case digits == 0 && letters == len(v):
		return by == '=' && next != '.'
	case digits == 0 && others > 0 && by == ':':
		return strings.ContainsAny(v, "!@#$%^&*+=?~")
	case digits == 0:
		return strings.IndexByte(v, '.') < 0 // settings.password
	}
	return true
}

// isMemberSecret reports whether the whole value of a member of a JSON object is
// a secret, by the member's name. Nothing but the value can stand there, so it
// may be as short and as plain as it likes.
func isMemberSecret(name, v string) bool {
	name = strings.TrimRight(name, " :=*?")
	switch named(name[max(0, len(name)-maxName):]) {
	case strong:
		return strings.TrimSpace(v) != "" && !isFiller(v) && !isTemplate(v)
	case weak:
		return plausible(v, weak, true, ':', '"')
	case cookies:
		return strings.IndexByte(v, '=') > 0 && !isTemplate(v)
	}
	return false
}

// tally counts what a value is made of.
func tally(v string) (digits, letters, others int) {
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

func capitals(v string) int {
	n := 0
	for i := range len(v) {
		if 'A' <= v[i] && v[i] <= 'Z' {
			n++
		}
	}
	return n
}

// isFiller reports what stands where a secret will be, or for the lack of one.
func isFiller(v string) bool {
	if strings.Trim(v, "*") == "" || strings.Trim(v, "xX") == "" || strings.Trim(v, ".") == "" {
		return true
	}
	var buf [longest]byte
	switch lower(buf[:0], v) {
	case "true", "false", "null", "none", "nil", "undefined", "string", "str", "text", "bool", "bytes", "required", "optional",
		"<redacted>", "redacted", "hidden", "masked", "password", "passwd", "secret", "token", "changed", "expired", "wrong", "invalid", "reset", "empty", "missing", "varchar", "integer":
		return true
	}
	return false
}

// templates are the forms in which the name of a value stands for it. A shorter
// way to open one comes after a longer one.
var templates = [...]struct{ open, end string }{
	{"${", "}"}, {"{{", "}}"}, {"#{", "}"}, {"%{", "}"}, {"$(", ")"}, {"%(", ")s"}, {"<%=", "%>"}, {"<", ">"}, {"{", "}"}, {"[", "]"},
}

// isTemplate reports a value that is made of templates alone: ${VAR}, {{var}},
// <your key>, $VAR; and the expression a password has to match.
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

// templateEnd returns where the template that v starts with ends, 0 for none.
func templateEnd(v string) int {
	for _, t := range templates {
		if !strings.HasPrefix(v, t.open) {
			continue
		}
		from := len(t.open)
		n := strings.Index(v[from:], t.end)
		if n <= 0 || t.open == "{" && strings.ContainsAny(v[:from+n], figures) || !isTitle(v[from:from+n]) {
			return 0
		}
		return from + n + len(t.end)
	}
	return variableEnd(v)
}

const figures = "0123456789"

// isTitle reports what names a value to a person or a program: words, and how
// programs call and default it, but no mark that is more at home in a password.
func isTitle(s string) bool {
	for i := range len(s) {
		if b := s[i]; !isName(b) && strings.IndexByte(" :|()'\",?/\\+=", b) < 0 {
			return false
		}
	}
	return true
}

// variableEnd returns where the variable that v starts with ends, 0 for none:
// $HOME, $db.password. What has small letters and digits could as well be a
// password that starts with "$".
func variableEnd(v string) int {
	if len(v) < 2 || v[0] != '$' || !isLetter(v[1]) && v[1] != '_' {
		return 0
	}
	end := 1
	for end < len(v) && (isWord(v[end]) || v[end] == '.' || v[end] == ':') {
		end++
	}
	digits, letters, _ := tally(v[:end])
	if digits > 0 && capitals(v[:end]) < letters {
		return 0
	}
	return end
}

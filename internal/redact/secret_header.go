package redact

import "strings"

// authCredentials returns the value after the HTTP scheme Bearer or Basic, if
// the space at i ends one. Both words have other meanings, so the value must
// look like credentials unless the header name precedes.
func authCredentials(text string, i int) (span, bool) {
	start := i
	for start > 0 && i-start < maxWord && isWordOrDigit(text[start-1]) {
		start--
	}
	var header bool
	least := 8
	var buf [maxWord]byte
	switch lowerWord(buf[:0], text[start:i]) {
	case "bearer":
		header = afterAuthorization(text, start)
	case "basic":
		if header = afterAuthorization(text, start); !header { // user:password in base64 is longer than most words
			least = minToken
		}
	default:
		return span{}, false
	}
	end, digits := i+1, false
	for end < len(text) && (isTokenByte(text[end]) || strings.IndexByte("._~+/=", text[end]) >= 0) {
		digits = digits || isDigit(text[end])
		end++
	}
	for text[end-1] == '.' {
		end--
	}
	v := text[i+1 : max(i+1, end)]
	if len(v) < least || !digits && (!header || isCredentialName(v)) {
		return span{}, false
	}
	return span{start: i + 1, end: end}, true
}

// isCredentialName reports whether v names credentials to fill in: Bearer
// YOUR_KEY, Bearer accessToken.
func isCredentialName(v string) bool {
	_, letters, _ := countClasses(v)
	return countCapitals(v) == letters || strengthOf(v[max(0, len(v)-maxName):]) != nameNone
}

// afterAuthorization reports whether the header name authorization precedes i.
func afterAuthorization(text string, i int) bool {
	const header = "authorization"
	for n := 0; n < 8 && strings.IndexByte(` "'\:,=`, byteAt(text, i-1)) >= 0 && i > 0; n++ {
		i--
	}
	return i >= len(header) && strings.EqualFold(text[i-len(header):i], header)
}

// cookieValue returns the name=value pairs after "Cookie:", up to the end of
// the line or quote.
func cookieValue(text string, at int) (span, bool) {
	start := at
	for at < len(text) && at-start < maxName && isTokenByte(text[at]) {
		at++
	}
	if at == start || byteAt(text, at) != '=' {
		return span{}, false
	}
	value := at + 1
	for at = value; at < len(text) && at-value < minValue; at++ {
		if b := text[at]; b <= ' ' || strings.IndexByte("\"'`\\;<>{}[]$", b) >= 0 {
			return span{}, false
		}
	}
	if at-value < minValue {
		return span{}, false
	}
	for at < len(text) && strings.IndexByte("\r\n\"'`\\[", text[at]) < 0 {
		at++
	}
	for text[at-1] == ' ' || text[at-1] == '.' {
		at--
	}
	return span{start: start, end: at}, true
}

// loginPassword returns the password of "user:password" at position at, after
// the flag at position flag: curl -u bob:hunter2. Other programs expect
// user:group there.
func loginPassword(text string, flag, at int) (span, bool) {
	isQuote := func(b byte) bool { return b == '"' || b == '\'' }
	if isQuote(byteAt(text, at)) {
		at++
	}
	user := at
	for at < len(text) && at-user < maxName && (isNameByte(text[at]) || strings.IndexByte("@+{}", text[at]) >= 0) {
		at++
	}
	name := text[user:at]
	if isQuote(byteAt(text, at)) {
		at++
	}
	if name == "" || byteAt(text, at) != ':' {
		return span{}, false
	}
	if at++; isQuote(byteAt(text, at)) {
		at++
	}
	end := at
	for end < len(text) && end < at+maxRead && text[end] > ' ' && strings.IndexByte("\"'`\\", text[end]) < 0 {
		end++
	}
	v := text[at:end]
	if len(v) < minValue || strings.IndexByte("/[", v[0]) >= 0 || isFiller(v) || isTemplate(v) {
		return span{}, false
	}
	digits, letters, others := countClasses(v)
	if (others == 0 && (digits == 0 || letters == 0) || v == name) && !strings.Contains(text[max(0, flag-2*maxRead):flag], "curl ") && hintBefore(text, flag, webClientHint) != hintPositive {
		return span{}, false
	}
	return span{start: at, end: end}, true
}

func webClientHint(word string) wordHint {
	switch word {
	case "curl", "wget", "http", "https", "xh":
		return hintPositive
	}
	return hintNone
}

package redact

import (
	"strings"
	"testing"
)

// Each function is called at one position and returns a part of the text.

// part is the returned part.
func part(text string, s span, ok bool) string {
	if !ok {
		return ""
	}
	return text[s.start:s.end]
}

func TestURLPassword(t *testing.T) {
	for text, want := range map[string]string{
		"://bob:pw@h":           "pw",
		"://bob:p@w@h/":         "p@w",
		"://bob:p:w@h":          "p:w",
		"://bob:p?w@h":          "p?w",
		"://:pw@h":              "pw",
		"://bob:pw@h, mail a@b": "pw",
		"://bob:pw@h1,c:d@h2":   "pw",
		"://bob:pw@h#@":         "pw",
		"(http://bob:pw@h)@":    "",
		"://bob@h":              "",
		"://bob:@h":             "",
		"://h:80/a@b":           "",
		"://bob:pw":             "",
		"://bob:p w@h":          "",
		"://bob:[SECRET_1]@h":   "",
		"://[::1]:80/@":         "",
		":/bob:pw@h":            "",
		"://" + strings.Repeat("a", 300) + ":pw@h": "",
	} {
		s, ok := urlPassword(text, 0)
		if got := part(text, s, ok); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestLoginPassword(t *testing.T) {
	for text, want := range map[string]string{
		"bob:hunter2":         "hunter2",
		"bob:hunter2 x":       "hunter2",
		`"bob:hunter2"`:       "hunter2",
		"bob:a!bcd":           "a!bcd",
		"bob:a:b:c":           "a:b:c",
		"bob+x@h.com:hunter2": "hunter2",
		"bob:swordfish":       "", // may be a group
		"1000:1000":           "",
		"www-data:www-data":   "",
		"a1:a1":               "",
		"bob:a1":              "",
		"bob:":                "",
		":hunter2":            "",
		"bob hunter2":         "",
		"http://host1":        "",
		"bob:$PASSWORD":       "",
		"bob:<password>":      "",
		"bob:password":        "",
		"bob:[SECRET_1]":      "",
	} {
		s, ok := loginPassword(text, 0, 0)
		if got := part(text, s, ok); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	const curl = "curl -u bob:swordfish"
	at := strings.Index(curl, "-u")
	s, ok := loginPassword(curl, at, at+3)
	if got, want := part(curl, s, ok), "swordfish"; got != want {
		t.Errorf("%q: got %q, want %q", curl, got, want)
	}
}

func TestCookieValue(t *testing.T) {
	for text, want := range map[string]string{
		"a=bcde":                                 "a=bcde",
		"a=bcde; f=g ; h=i.":                     "a=bcde; f=g ; h=i",
		"a=bcde\r\nHost: x":                      "a=bcde",
		"a=bcde' http://x":                       "a=bcde",
		`a=bcde\nHost`:                           "a=bcde",
		"a=bcde [EMAIL_1]":                       "a=bcde",
		"a=bcd":                                  "",
		"a=b cde":                                "",
		"a=;bcde":                                "",
		"a=${B}cde":                              "",
		"a=<value>":                              "",
		"a = bcde":                               "",
		"=bcde":                                  "",
		"":                                       "",
		"a":                                      "",
		strings.Repeat("a", maxName+1) + "=bcde": "",
	} {
		s, ok := cookieValue(text, 0)
		if got := part(text, s, ok); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestAuthCredentials(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"Bearer abcd1234", "abcd1234"},
		{"bearer abcd1234.efgh~+/=.", "abcd1234.efgh~+/="},
		{"Bearer abcd123", ""},
		{"Bearer abcdefgh", ""},
		{"Basic dXNlcjpodW50ZXIy", "dXNlcjpodW50ZXIy"},
		{"Basic dXNlcjpwYXN1", ""},
		{"Forbearer abcd1234", ""},
		{"_Bearer abcd1234", ""},
		{"Authorization: Bearer abcdefgh", "abcdefgh"},
		{"AUTHORIZATION=Basic abcdefgh", "abcdefgh"},
		{`\"authorization\": \"Bearer abcdefgh\"`, "abcdefgh"},
		{"Proxy-Authorization: Basic abcdefgh", "abcdefgh"},
		{"Authorization: Bearer abcdefg", ""},
		{"Authorization: Bearer ACCESS_TOKEN", ""},
		{"Authorization: Bearer YOUR_KEY", ""},
		{"Authorization: Bearer accessToken", ""},
		{"Authorization: Bearer access_token1", "access_token1"},
		{"Authorization: Bearer .", ""},
		{"Authorization: Bearer ", ""},
		{"Authorization           : Bearer abcdefgh", ""},
	} {
		i := strings.LastIndex(strings.ToLower(tc.text), "r ")
		if i < 0 || strings.Contains(strings.ToLower(tc.text), "basic") {
			i = strings.LastIndex(strings.ToLower(tc.text), "c ")
		}
		s, ok := authCredentials(tc.text, i+1)
		if got := part(tc.text, s, ok); got != tc.want {
			t.Errorf("%q: got %q, want %q", tc.text, got, tc.want)
		}
	}
}

func TestElementValue(t *testing.T) {
	for text, want := range map[string]string{
		"<password>hunter2</password>":                      "hunter2",
		"<password>swordfish</":                             "swordfish",
		"<a:pwd>hunter2</a:pwd>":                            "hunter2",
		"<Password>two words 2</":                           "two words 2",
		"<password>two words</":                             "",
		"<password>hunter2<b":                               "",
		"<password>hunter2":                                 "",
		"<password>hunter\n2</":                             "",
		"<password>[SECRET_1]</":                            "",
		"<password>ab1</":                                   "",
		"<password></password>":                             "",
		"<password>{{p}}</password>":                        "",
		"<user>hunter2</user>":                              "",
		"password>hunter2</":                                "",
		"</password>hunter2</":                              "",
		">hunter2</":                                        "",
		"<password>" + strings.Repeat("a1", maxRead) + "</": "",
	} {
		s, ok := elementValue(text, strings.IndexByte(text, '>'))
		if got := part(text, s, ok); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestFlagValue(t *testing.T) {
	for text, want := range map[string]string{
		"--password hunter2":     "hunter2",
		"--db-password hunter2x": "hunter2x",
		"-u bob:hunter2":         "hunter2",
		"--user bob:hunter2":     "hunter2",
		"--proxy-user a:hunter2": "hunter2",
		"--users bob:hunter2":    "",
		"-p hunter2":             "",
		"--password":             "",
		"--password --x1y2z3":    "",
		"--verbose hunter2":      "",
		"- hunter2":              "",
		"-":                      "",
	} {
		s, ok := flagValue(text, 0)
		if got := part(text, s, ok); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if _, ok := flagValue("x--password hunter2", 1); ok {
		t.Error("a flag inside of a word: got a value, want none")
	}
}

func TestIsMemberSecret(t *testing.T) {
	for _, tc := range []struct {
		name, value string
		want        bool
	}{
		{"password", "y", true},
		{"password ", "two words", true},
		{"new_password?", "y", true},
		{strings.Repeat("a", 99) + "password", "y", true},
		{"password", "", false},
		{"password", "\n\t", false},
		{"password", "****", false},
		{"password", "xxx", false},
		{"password", "null", false},
		{"password", "{{password}}", false},
		{"password_hint", "x1y2z3a4", false},
		{"token", "abcd1234", true},
		{"token", "abc\n1234", true},
		{"token", "abc123", false},
		{"token", "identifier", false},
		{"token", "12345678", false},
		{"cookie", "a=b", true},
		{"cookie", "=b", false},
		{"cookie", "oats", false},
		{"", "password=hunter2", false},
	} {
		if got := isMemberSecret(tc.name, tc.value); got != tc.want {
			t.Errorf("%q: %q: got %v, want %v", tc.name, tc.value, got, tc.want)
		}
	}
}

// Punctuation continues a value if it does not end it.
func TestJoinsNext(t *testing.T) {
	for _, tc := range []struct {
		text  string // the mark is the first byte
		by    byte
		quote byte
		want  bool
	}{
		{",abc", '=', 0, true},
		{";abc", ':', 0, true},
		{"&abc", '=', 0, true},
		{";abc;d=e", '=', 0, true},
		{",", '=', 0, false},
		{", abc", '=', 0, false},
		{",abc=d", '=', 0, false},
		{",abc:d", ':', 0, false},
		{";User Id=d", '=', 0, false},
		{",User Id=d", '=', 0, true},
		{",abc", ' ', 0, false},
		{",abc", '=', '"', false},
		{",;", '=', 0, false},
		{".abc", '=', 0, false},
	} {
		a := valueReader{text: tc.text, separator: tc.by, quote: tc.quote}
		if got := a.joinsNext(0); got != tc.want {
			t.Errorf("%q after %q: got %v, want %v", tc.text, tc.by, got, tc.want)
		}
	}
}

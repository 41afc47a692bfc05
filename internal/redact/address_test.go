package redact

import (
	"strings"
	"testing"
)

// cut returns the values found in a text, separated by spaces.
func cut(text string, found []span) string {
	parts := make([]string, len(found))
	for i, s := range found {
		parts[i] = text[s.start:s.end]
	}
	return strings.Join(parts, " ")
}

func TestFindEmails(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"one", "bob@example.com", "bob@example.com"},
		{"dots and signs at the ends", "..-bob+x@example.com-.", "bob+x@example.com"},
		{"in a chain", "a@b.cc@d.ee", "a@b.cc"},
		{"side by side", "a@b.cc,d@e.ff", "a@b.cc d@e.ff"},
		{"last label starts with a digit", "bob@example.4a", ""},
		{"last label of one letter", "bob@example.com.x", "bob@example.com"},
		{"last label of one letter alone", "bob@example.x", ""},
		{"no local part", "@example.com", ""},
		{"no domain", "bob@", ""},
		{"two dots", "bob@example..com", ""},
		{"label ends in dashes", "bob@example.com--", "bob@example.com"},
		{"quoted", `"a b"@example.com`, `"a b"@example.com`},
		{"quoted, too long", `"` + strings.Repeat("a", 80) + `"@example.com`, ""},
		{"quote not opened", `b"@example.com`, ""},
		{"repository", "git@example.com:a/b", ""},
		{"of a person called git", "git@example.com", "git@example.com"},
		{"password of a URL", "ftp://a:b@example.com", ""},
		{"behind a colon", "mail:b@example.com", "b@example.com"},
		{"behind a colon and a slash", "/a:b@example.com", "b@example.com"},
		{"words without blanks", "是bob@example.com是", "bob@example.com"},
		{"of such words", "是@例子.公司", "是@例子.公司"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := cut(tc.text, findEmails(tc.text, nil)); got != tc.want {
				t.Errorf("%q: got %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}

func TestFindIPs(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"four numbers", "10.0.0.7", "10.0.0.7"},
		{"maximum", "255.255.255.255", "255.255.255.255"},
		{"above the maximum", "255.255.255.256", ""},
		{"leading zero", "10.0.0.07", ""},
		{"five numbers", "1.2.3.4.5", ""},
		{"three numbers", "1.2.3", ""},
		{"with a port", "10.0.0.7:80", "10.0.0.7"},
		{"with a prefix", "10.0.0.0/8", "10.0.0.0/8"},
		{"with a prefix too long", "10.0.0.0/33", "10.0.0.0"},
		{"with a path", "10.0.0.7/8a", "10.0.0.7"},
		{"in a name", "a10.0.0.7", ""},
		{"behind a name", "ec2-10.0.0.7", ""},
		{"end of a sentence", "at 10.0.0.7.", "10.0.0.7"},
		{"version", "version 10.0.0.7", ""},
		{"version of an address", "version of host 10.0.0.7", "10.0.0.7"},
		{"candidate", "10.0.0.7-rc1", ""},
		{"range", "10.0.0.7-10.0.0.9", "10.0.0.7"},
		{"six, short", "::1", "::1"},
		{"six, nothing", "::", ""},
		{"six, everything", "::/0", "::/0"},
		{"six, full", "2001:db8:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:1"},
		{"six, one number less", "2001:db8:0:0:0:0:1", ""},
		{"six, with four", "::ffff:10.0.0.7", "::ffff:10.0.0.7 10.0.0.7"},
		{"six, with a zone", "fe80::1%eth0.", "fe80::1%eth0"},
		{"six, with a prefix", "2001:db8::/32", "2001:db8::/32"},
		{"six, in brackets", "[2001:db8::1]:80", "2001:db8::1"},
		{"slice", "x[1::2]", ""},
		{"scope", "std::dead::beef", ""},
		{"time", "12:34:56", ""},
		{"hardware", "aa:bb:cc:dd:ee:ff", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := cut(tc.text, findIPs(tc.text, nil)); got != tc.want {
				t.Errorf("%q: got %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}

func TestPlaceholderEnd(t *testing.T) {
	for text, want := range map[string]string{
		"[EMAIL_1]": "[EMAIL_1]", "[SECRET_999999] x": "[SECRET_999999]", "[LITERAL_0]": "[LITERAL_0]", "[IBAN_007]": "[IBAN_007]",
		"": "", "[": "", "[]": "", "[EMAIL]": "", "[EMAIL_]": "", "[EMAIL_1": "", "[EMAIL_1x]": "", "[EMAIL_1234567]": "", "[email_1]": "", "[E-MAIL_1]": "",
		"[NOTE_1]": "", " [EMAIL_1]": "", "[_1]": "", "[EMAIL__1]": "", "[EMAILEMAILEMAILEMAIL_1]": "",
	} {
		if got := text[:placeholderEnd(text, 0)]; got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	for row := range detectors {
		for _, n := range []int{1, 10, 999999} {
			if p := formatPlaceholder(row, n); placeholderEnd(p, 0) != len(p) {
				t.Errorf("got %q not parsed as a placeholder", p)
			}
		}
		if len(detectors[row].label) > maxLabel {
			t.Errorf("got label %q, longer than the maximum", detectors[row].label)
		}
	}
}

func TestCountBytes(t *testing.T) {
	for _, tc := range []struct {
		text                 string
		digits, dots, colons int
		seen                 byteClass
	}{
		{"", 0, 0, 0, 0},
		{"a1.:@[ é", 1, 1, 1, classLetter | classDigit | classDot | classColon | classAt | classBracket | classOther | classNonASCII},
		{"10.0.0.7::", 5, 3, 2, classDigit | classDot | classColon},
	} {
		if got, want := countBytes(tc.text), (byteCounts{tc.digits, tc.dots, tc.colons, tc.seen}); got != want {
			t.Errorf("%q: got %+v, want %+v", tc.text, got, want)
		}
	}
}

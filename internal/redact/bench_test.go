package redact_test

import (
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/redact"
)

// prose is a typical request: a few numbers and no value to mask.
const prose = "Please review the pull request for our python service: it adds 3 retries with a back-off of 200 ms, " +
	"moves the parser into its own package and changes version 1.2.3 to 1.3.0. Tests are in tests/test_parser.py (12 of them). "

func subjects() []struct{ name, text string } {
	return []struct{ name, text string }{
		{"prose", prose},
		{"prose without digits", strings.Repeat("please review this notebook and point out needless cost ", 5)},
		{"portuguese", strings.Repeat("Revise este código e aponte o custo desnecessário da operação. ", 5)},
		{"full width", strings.Repeat("番号は１２３です。", 10)},
		{"values", prose + "Write to bob@example.com or call +1 415 555 0132; card 4111 1111 1111 1111, host 192.168.1.17, api_key=abcd1234efgh."},
		{"64 KiB prose", strings.Repeat(prose, 65536/len(prose))},
	}
}

func BenchmarkMask(b *testing.B) {
	r := redactor(b, redact.Config{})
	for _, s := range subjects() {
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(int64(len(s.text)))
			b.ReportAllocs()
			for b.Loop() {
				r.StartMasking().MaskText(s.text)
			}
		})
	}
}

// hostile are texts that are slow to scan: the cost per byte must not grow with the length.
var hostile = []string{
	"1 ", "1-", "4", "12 ", "4111 1111 1111 1111 ", "a@", "a@b.", "@", ".", "a.", "x@a.bc", "::", "1:", "a:", "1.", "1.1.1.1", "1.1.1.1.",
	"=", ":", "password=", "password:a", `password="`, " is ", "password is ", "secret is a1b2c3", "://", "://a:b", "://a:b@", "AA00", "DE89 ", "GB82WEST",
	"[", "[EMAIL_", "[EMAIL_1]", "]", "eyJ", "eyJ.", "eyJaaaaaaaaaaaaa.", "sk-", "-----BEGIN ", "-----BEGIN PRIVATE KEY", "Bearer ", "bearer a1", "basic ",
	"+1", "(1) ", "(123) ", "call 1 ", "tel 1234567 ", "\u200b", "１", "是", "é@", "是@", "\"@", "\"a\"@", "aaaaaaaaaaaaaaaa1", "-", "_", "key aaaaaaaaaa1a2a3a4a5a6a7 ",
	"1.1.1.1a@b.cc", "4111111111111111a@b.cc ", "a b=c ",
}

func BenchmarkHostile(b *testing.B) {
	r := redactor(b, redact.Config{})
	for _, unit := range hostile {
		for _, size := range []int{1 << 12, 1 << 16} {
			text := strings.Repeat(unit, size/len(unit))
			b.Run(unit+"/"+map[int]string{1 << 12: "4K", 1 << 16: "64K"}[size], func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					r.StartMasking().MaskText(text)
				}
			})
		}
	}
}

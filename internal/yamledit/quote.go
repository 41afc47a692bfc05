package yamledit

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// Quote returns a string as a scalar in double quotes.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsGraphic(r):
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// plainKey matches keys that need no quotes in any version of YAML.
var plainKey = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]*$`)

// Key returns a string as a scalar, without quotes if no version of YAML needs them.
func Key(key string) string {
	switch strings.ToLower(key) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return Quote(key)
	}
	if plainKey.MatchString(key) {
		return key
	}
	return Quote(key)
}

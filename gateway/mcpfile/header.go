package mcpfile

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// Limits of a header, in bytes. Servers usually accept 8 KiB for all headers together.
const (
	maxHeaderName  = 128
	maxHeaderValue = 8 << 10
)

// connectionHeaders belong to one connection (RFC 9110 §7.6.1) or delimit a message. The HTTP
// client sets them.
var connectionHeaders = []string{
	"Connection", "Content-Length", "Host", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// CheckHeader returns what is wrong with a header, "" if it can be sent. The text does not
// contain the value.
func CheckHeader(name, value string) string {
	switch {
	case len(name) > maxHeaderName:
		return fmt.Sprintf("the name of a header has %d bytes, at most %d", len(name), maxHeaderName)
	case !isToken(name):
		return fmt.Sprintf("%.64q is not the name of a header", name)
	case slices.Contains(connectionHeaders, http.CanonicalHeaderKey(name)):
		return "the header " + name + " is set by the connection: remove it"
	case len(value) > maxHeaderValue:
		return fmt.Sprintf("the value of the header %s has %d bytes, at most %d", name, len(value), maxHeaderValue)
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return "the value of the header " + name + " contains a control character"
	}
	return ""
}

// isToken reports whether s is a token (RFC 9110 §5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		isLetterOrDigit := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !isLetterOrDigit && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// checkHeaders reports headers that cannot be sent.
func (o *object) checkHeaders(headers map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if detail := CheckHeader(name, headers[name]); detail != "" {
			o.errorf(strictjson.AppendPointer(o.at+"/headers", name), "%s", detail)
		}
	}
}

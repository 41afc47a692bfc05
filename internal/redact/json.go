package redact

import (
	"encoding/json"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// JSON masks the strings of a JSON value, names of members included, but for the
// kinds wanted: what an agent gets of a caller's inputs. "all" (and nil) returns
// raw itself. Numbers stay numbers. The name of a member is read with its value,
// so that {"password": "…"} is a password. raw must be valid JSON; what is not
// comes back masked as far as it could be read.
func (m *Masking) JSON(raw json.RawMessage, want contract.Restore) json.RawMessage {
	show, everything := wanted(want)
	if everything {
		return raw
	}
	text := string(raw)
	var b strings.Builder
	at, name := 0, ""
	for i := 0; i < len(text); {
		if text[i] != '"' {
			i++
			continue
		}
		end := stringEnd(text, i)
		s := unquote(text[i:end])
		isName := followedByColon(text, end)
		context := name
		if isName {
			name, context = s, ""
		} else {
			name = ""
		}
		if masked := m.maskMember(context, s, show); masked != s {
			b.WriteString(text[at:i])
			b.Write(quote(masked))
			at = end
		}
		i = end
	}
	if at == 0 {
		return raw
	}
	b.WriteString(text[at:])
	return json.RawMessage(b.String())
}

// maskMember masks the value of a member by what stands before it: it is read as
// name: "value".
func (m *Masking) maskMember(name, s string, show kindSet) string {
	if name == "" {
		return m.mask(s, show)
	}
	from := len(name) + len(`: "`)
	to := from + len(s)
	text := name + `: "` + s + `"`
	found := scan(text, m.r.kinds)
	if len(found) == 0 {
		return s
	}
	for i := range found { // the value alone is masked, not what runs into it
		if s := &found[i]; s.end > from {
			s.start, s.end = min(max(s.start, from), to), min(s.end, to)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.replace(text[:to], found, from, show)
}

// stringEnd returns where the JSON string that opens at i ends.
func stringEnd(text string, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

func followedByColon(text string, i int) bool {
	return strings.HasPrefix(strings.TrimLeft(text[i:min(len(text), i+64)], " \t\r\n"), ":")
}

func unquote(quoted string) string {
	inner := strings.Trim(quoted, `"`)
	if !strings.Contains(inner, `\`) {
		return inner
	}
	var s string
	if err := strictjson.Unmarshal([]byte(quoted), &s); err != nil {
		return inner
	}
	return s
}

func quote(s string) []byte {
	q, err := strictjson.Marshal(s)
	if err != nil { // a string always encodes
		return []byte(`""`)
	}
	return q
}

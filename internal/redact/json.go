package redact

import (
	"encoding/json"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// MaskJSON masks the strings of a JSON value, including member names, except
// the kinds in want: use it for the inputs an agent receives. If want is nil or
// "all" it returns raw. Numbers are not changed. A string is interpreted with
// the name of its member, also inside an array: the value of {"password": "…"}
// is a secret as a whole. raw must be valid JSON; otherwise it is masked as far
// as it can be parsed.
func (m *Masking) MaskJSON(raw json.RawMessage, want contract.DataClasses) json.RawMessage {
	show, everything := parseRestore(want)
	if everything {
		return raw
	}
	return m.maskJSONValue("", raw, show)
}

// MaskMember masks the name and value of a single member, like MaskJSON does
// for all members of an object. Different names stay different.
func (m *Masking) MaskMember(name string, raw json.RawMessage, want contract.DataClasses) (string, json.RawMessage) {
	show, everything := parseRestore(want)
	if everything {
		return name, raw
	}
	return m.maskExcept(name, show), m.maskJSONValue(name, raw, show)
}

// maskJSONValue masks the value of the member with the name, "" for none.
func (m *Masking) maskJSONValue(name string, raw json.RawMessage, show kindSet) json.RawMessage {
	text := string(raw)
	var b strings.Builder
	at := 0
	names := []string{name} // member names of the open arrays and objects
	for i := 0; i < len(text); {
		top := len(names) - 1
		switch text[i] {
		case '"':
			end := stringEnd(text, i)
			s, context := unquoteJSON(text[i:end]), names[top]
			if followedByColon(text, end) {
				names[top], context = s, ""
			}
			if masked := m.maskMember(context, s, show); masked != s {
				b.WriteString(text[at:i])
				b.Write(strictjson.QuoteString(masked))
				at = end
			}
			i = end
			continue
		case '[', '{': // an object's members replace the name
			names = append(names, names[top])
		case ']', '}':
			names = names[:max(1, top)]
		}
		i++
	}
	if at == 0 {
		return raw
	}
	b.WriteString(text[at:])
	return json.RawMessage(b.String())
}

// maskMember masks the value of a member: as a whole if the name requires it,
// else by scanning name: "value".
func (m *Masking) maskMember(name, s string, show kindSet) string {
	if name == "" {
		return m.maskExcept(s, show)
	}
	if name = nameSuffix(name); m.redactor.kinds.has(secretRow) && isMemberSecret(name, s) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.replaceSpans(s, []span{{start: 0, end: len(s), row: secretRow}}, 0, show)
	}
	from := len(name) + len(`: "`)
	to := from + len(s)
	text := name + `: "` + s + `"`
	found := findValues(text, m.redactor.kinds)
	if len(found) == 0 {
		return s
	}
	for i := range found { // mask only inside the value
		if s := &found[i]; s.end > from {
			s.start, s.end = min(max(s.start, from), to), min(s.end, to)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.replaceSpans(text[:to], found, from, show)
}

// nameSuffix returns the folded end of a name, which determines the kind of the
// value. It is bounded, because each element of an array is scanned with it.
func nameSuffix(name string) string {
	name = name[max(0, len(name)-2*nearBytes):]
	if needsFolding(name) {
		name = foldText(name).text
	}
	return name[max(0, len(name)-nearBytes):]
}

// stringEnd returns the end of the JSON string that starts at i.
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
	return strings.HasPrefix(strings.TrimLeft(text[i:], " \t\r\n"), ":")
}

func unquoteJSON(quoted string) string {
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

package redact

import (
	"encoding/json"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// MaskJSON masks the strings of a JSON value, names of members included, but for the
// kinds wanted: what an agent gets of a caller's inputs. "all" (and nil) returns
// raw itself. Numbers stay numbers. A string is read with the name of its member,
// also as an element of an array: {"password": "…"} is a password, all of it. raw
// must be valid JSON; what is not comes back masked as far as it could be read.
func (m *Masking) MaskJSON(raw json.RawMessage, want contract.Restore) json.RawMessage {
	show, everything := wanted(want)
	if everything {
		return raw
	}
	return m.json("", raw, show)
}

// MaskMember masks one member of an object as JSON does all of them: its name, and
// its value by its name. Members that differ in their names still do.
func (m *Masking) MaskMember(name string, raw json.RawMessage, want contract.Restore) (string, json.RawMessage) {
	show, everything := wanted(want)
	if everything {
		return name, raw
	}
	return m.mask(name, show), m.json(name, raw, show)
}

// json masks the value of the member of that name, "" for none.
func (m *Masking) json(name string, raw json.RawMessage, show kindSet) json.RawMessage {
	text := string(raw)
	var b strings.Builder
	at := 0
	names := []string{name} // of the value to come in each array and object that is open
	for i := 0; i < len(text); {
		top := len(names) - 1
		switch text[i] {
		case '"':
			end := stringEnd(text, i)
			s, context := unquote(text[i:end]), names[top]
			if followedByColon(text, end) {
				names[top], context = s, ""
			}
			if masked := m.maskMember(context, s, show); masked != s {
				b.WriteString(text[at:i])
				b.Write(quote(masked))
				at = end
			}
			i = end
			continue
		case '[', '{': // the members of an object bring names of their own
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

// maskMember masks the value of a member by its name: as a whole if the name says
// so, else as name: "value" is read.
func (m *Masking) maskMember(name, s string, show kindSet) string {
	if name == "" {
		return m.mask(s, show)
	}
	if name = lastPart(name); m.r.kinds.has(secretRow) && isMemberSecret(name, s) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.replace(s, []span{{start: 0, end: len(s), row: secretRow}}, 0, show)
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

// lastPart returns the end of a name in plain characters, as much of it as says
// anything about a value. An array may have many elements, and each is read with
// the name.
func lastPart(name string) string {
	name = name[max(0, len(name)-2*nearBytes):]
	if foldable(name) {
		name = fold(name).text
	}
	return name[max(0, len(name)-nearBytes):]
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
	return strings.HasPrefix(strings.TrimLeft(text[i:], " \t\r\n"), ":")
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

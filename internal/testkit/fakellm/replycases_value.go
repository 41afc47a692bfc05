package fakellm

import (
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/internal/llm"
)

// render returns the JSON of a changed draft.
func (d replyDraft) render(change func(*replyDraft)) string {
	change(&d)
	return d.String()
}

// subtasksWithTitles returns subtasks with only titles.
func subtasksWithTitles(list ...string) string {
	tasks := make([]string, len(list))
	for i, title := range list {
		tasks[i] = fmt.Sprintf(`{"title":%s}`, quoteName(title))
	}
	return "[" + strings.Join(tasks, ",") + "]"
}

// memberNameCases have wrong member names.
func (d replyDraft) memberNameCases() []textCase {
	v := d.String()
	rename := func(from, to string) string { return strings.Replace(v, `"`+from+`":`, `"`+to+`":`, 1) }
	add := func(member string) string { return v[:len(v)-1] + "," + member + "}" }
	return []textCase{
		{name: "INTENT", text: rename("intent", "INTENT"), want: badJSON},
		{name: "Confidence", text: rename("confidence", "Confidence"), want: badJSON},
		{name: "domainſ, which folds to domains", text: rename("domains", "domain\u017f"), want: badJSON},
		{name: "intent with a Cyrillic е", text: rename("intent", "int\u0435nt"), want: badJSON},
		{name: "intent with a trailing space", text: rename("intent", "intent "), want: badJSON},
		{name: "domain instead of domains", text: rename("domains", "domain"), want: badJSON},
		{name: "camel case", text: rename("subtasks", "subTasks"), want: badJSON},
		{name: "duplicate intent", text: add(`"intent":"unknown"`), want: badJSON},
		{name: "duplicate equal intent", text: add(`"intent":` + d.intent), want: badJSON},
		{name: "duplicate escaped intent", text: add(`"\u0069ntent":"unknown"`), want: badJSON},
		{name: "duplicate intent in capitals", text: add(`"INTENT":"unknown"`), want: badJSON},
		{name: "duplicate confidence", text: add(`"confidence":1`), want: badJSON},
		{name: "duplicate title of a subtask", text: d.render(func(c *replyDraft) { c.subtasks = `[{"title":"a","title":"b"}]` }), want: badJSON},
		{name: "additional member", text: add(`"explanation":"because"`), want: badJSON},
		{name: "additional member with an agent", text: add(`"agent_id":"admin_agent"`), want: badJSON},
		{name: "empty member name", text: add(`"":""`), want: badJSON},
		{name: "__proto__", text: add(`"__proto__":{"intent":"unknown"}`), want: badJSON},
		{name: "additional member of a subtask", text: d.render(func(c *replyDraft) { c.subtasks = `[{"title":"a","agent":"b"}]` }), want: badJSON},
		{name: "no intent", text: d.render(func(c *replyDraft) { c.intent = "" }), want: badJSON, or: valueOr},
		{name: "no domains", text: d.render(func(c *replyDraft) { c.domains = "" }), want: badJSON, or: valueOr},
		{name: "no confidence", text: d.render(func(c *replyDraft) { c.confidence = "" }), want: badJSON, or: valueOr},
		{name: "no subtasks", text: d.render(func(c *replyDraft) { c.subtasks = "" }), or: eitherOr},
	}
}

// typeCases have values of the wrong type.
func (d replyDraft) typeCases() []textCase {
	var rows []textCase
	add := func(name string, or []string, change func(*replyDraft)) {
		rows = append(rows, textCase{name: name, text: d.render(change), want: badJSON, or: or})
	}
	for _, json := range []string{"null", "5", "true", "[]", "{}", "[" + d.intent + "]"} {
		add("intent is "+json, nil, func(c *replyDraft) { c.intent = json })
	}
	for _, json := range []string{"null", d.intent, "5", "{}", "[null]", "[5]", `[["python"]]`, "[{}]"} {
		add("domains is "+json, nil, func(c *replyDraft) { c.domains = json })
	}
	for _, json := range []string{"null", `"none"`, "3", "{}", "[null]", `["Review"]`, "[[]]"} {
		add("subtasks is "+json, nil, func(c *replyDraft) { c.subtasks = json })
	}
	for _, json := range []string{"null", `"0.93"`, `"high"`, "true", "[0.93]", "{}"} {
		add("confidence is "+json, nil, func(c *replyDraft) { c.confidence = json })
	}
	add("title is null", valueOr, func(c *replyDraft) { c.subtasks = `[{"title":null}]` })
	add("title is 5", nil, func(c *replyDraft) { c.subtasks = `[{"title":5}]` })
	add("title is []", nil, func(c *replyDraft) { c.subtasks = `[{"title":[]}]` })
	add("reason is 5", nil, func(c *replyDraft) { c.subtasks = `[{"title":"a","reason":5}]` })
	add("domains of a subtask is a string", nil, func(c *replyDraft) { c.subtasks = `[{"title":"a","domains":"python"}]` })
	add("domains of a subtask is [null]", nil, func(c *replyDraft) { c.subtasks = `[{"title":"a","domains":[null]}]` })
	// Models that must include every member use null for missing values.
	add("reason is null", mayBeTaken, func(c *replyDraft) { c.subtasks = `[{"title":"a","reason":null}]` })
	add("intent of a subtask is null", mayBeTaken, func(c *replyDraft) { c.subtasks = `[{"title":"a","intent":null}]` })
	add("domains of a subtask is null", mayBeTaken, func(c *replyDraft) { c.subtasks = `[{"title":"a","domains":null}]` })
	return rows
}

// vocabularyCases have names that are not in the registry.
func (d replyDraft) vocabularyCases() []textCase {
	var rows []textCase
	const name = ValidIntent
	for _, v := range []struct{ name, intent string }{
		{"unknown intent", "made_up"},
		{"empty intent", ""},
		{"blank intent", " "},
		{"intent in capitals", strings.ToUpper(name)},
		{"intent with a capital", strings.ToUpper(name[:1]) + name[1:]},
		{"intent with spaces around", " " + name + " "},
		{"intent with a hyphen", strings.ReplaceAll(name, "_", "-") + "-"},
		{"intent with Cyrillic letters", strings.NewReplacer("o", "\u043e", "e", "\u0435", "c", "\u0441", "a", "\u0430").Replace(name) + "\u0456"},
		{"intent with a zero-width space", name[:1] + "\u200b" + name[1:]},
		{"intent with a combining mark", name + "\u0301"},
		{"intent in full-width letters", "\uff43" + name[1:]},
		{"intent with a NUL in escapes", name + `\u0000`},
		{"two intents in one", name + "," + name},
		{"agent id as an intent", "quality_agent"},
		{"Unknown with a capital", "Unknown"},
		{"wildcard as an intent", "*"},
		{"very long intent", strings.Repeat("x", 50_000)},
	} {
		rows = append(rows, textCase{name: v.name, text: d.render(func(c *replyDraft) { c.intent = quoteName(v.intent) }), want: badValue})
	}
	for _, v := range []struct{ name, domain string }{
		{"unknown domain", "made_up"},
		{"empty domain", ""},
		{"domain with a zero-width joiner", validDomain + "\u200d"},
		{"domain in capitals", strings.ToUpper(validDomain)},
		{"wildcard domain", "*"},
	} {
		rows = append(rows, textCase{name: v.name, text: d.render(func(c *replyDraft) { c.domains = "[" + quoteName(v.domain) + "]" }), want: badValue})
	}
	return rows
}

// numberCases have an invalid confidence.
func (d replyDraft) numberCases() []textCase {
	var rows []textCase
	for _, json := range []string{"1.7", "-1", "1.0000001", "-0.0001", "93", "1e308", "-1e308"} {
		rows = append(rows, textCase{name: "confidence " + json, text: d.render(func(c *replyDraft) { c.confidence = json }), want: badValue})
	}
	for _, json := range []string{"NaN", "Infinity", "-Infinity", "1e400", "-1e400", "0x1", "01", "+0.5", ".5", "0.", "1e", "0,93", "93%", "1_0", "½"} {
		rows = append(rows, textCase{name: "confidence " + json, text: d.render(func(c *replyDraft) { c.confidence = json }), want: badJSON})
	}
	digits := strings.Repeat("9", 5_000)
	rows = append(rows, textCase{name: "confidence of 5,000 digits", text: d.render(func(c *replyDraft) { c.confidence = digits }), want: badJSON})
	return rows
}

// countCases have too many or too few entries.
func (d replyDraft) countCases() []textCase {
	domain := strings.Trim(d.domains, "[]")
	list := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat(domain+",", n), ",") + "]" }
	return []textCase{
		{name: "no domain", text: d.render(func(c *replyDraft) { c.domains = "[]" }), want: badValue},
		{name: "four domains", text: d.render(func(c *replyDraft) { c.domains = list(4) }), want: badValue},
		{name: "a thousand domains", text: d.render(func(c *replyDraft) { c.domains = list(1000) }), want: badValue},
		{name: "duplicate domain", text: d.render(func(c *replyDraft) { c.domains = list(2) }), want: badValue, or: mayBeTaken},
		{name: "four subtasks", text: d.render(func(c *replyDraft) { c.subtasks = subtasksWithTitles("a", "b", "c", "d") }), want: badValue},
		{name: "a thousand subtasks", text: d.render(func(c *replyDraft) { c.subtasks = subtasksWithTitles(make([]string, 1000)...) }), want: badValue},
	}
}

// subtaskCases have an invalid subtask.
func (d replyDraft) subtaskCases() []textCase {
	one := func(subtask string) string { return d.render(func(c *replyDraft) { c.subtasks = "[" + subtask + "]" }) }
	return []textCase{
		{name: "empty title", text: one(`{"title":""}`), want: badValue},
		{name: "title of white space", text: one(`{"title":" \t "}`), want: badValue},
		{name: "title of 201 characters", text: one(`{"title":` + quoteName(strings.Repeat("é", 201)) + `}`), want: badValue},
		{name: "title of 100,000 characters", text: one(`{"title":` + quoteName(strings.Repeat("x", 100_000)) + `}`), want: badValue},
		{name: "no title", text: one(`{"reason":"asked for"}`), want: badValue, or: jsonOr},
		{name: "empty subtask", text: one(`{}`), want: badValue, or: jsonOr},
		{name: "subtask with an unknown intent", text: one(`{"title":"a","intent":"made_up"}`), want: badValue},
		{name: "subtask with an unknown domain", text: one(`{"title":"a","domains":["made_up"]}`), want: badValue},
		{name: "subtask with four domains", text: one(`{"title":"a","domains":["unknown","unknown","unknown","unknown"]}`), want: badValue},
		{name: "subtask with an empty intent", text: one(`{"title":"a","intent":""}`), want: badValue, or: mayBeTaken},
		{name: "subtask with no domain", text: one(`{"title":"a","domains":[]}`), want: badValue, or: mayBeTaken},
		{name: "subtask with a NUL in escapes", text: one(`{"title":"a\u0000b"}`), want: badValue, or: mayBeTaken},
		{name: "subtask with bidirectional marks", text: one("{\"title\":\"a \u202e b\"}"), or: valueOr},
		{name: "reason of 100,000 characters", text: one(`{"title":"a","reason":` + quoteName(strings.Repeat("x", 100_000)) + `}`), or: []string{badValue, llm.ReasonInvalidJSON}},
	}
}

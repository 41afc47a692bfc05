package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// docStep is a command of a document, a file that it contains, or a reply of the model.
type docStep struct {
	line     int    // in the document
	command  string // "" for a file and for a reply
	expected []string
	compared bool // the output is compared with expected; otherwise the command must only succeed

	file, content string
	reply         string // of the model from here on
}

// parseDocument returns the commands and files of a document in order:
//
//	```console             lines with the prefix "$ " are commands; the lines after a
//	                       command, if any, are its output
//	```sh                  every line is a command; its output is not shown
//	```json output         the output of the previous command
//	```yaml file=NAME      a file
//	<!-- run: COMMAND -->  a command that prepares the next block
//	<!-- model: REPLY -->  the reply of the fake model from here on
//
// A command continues on the next line after a backslash and within quotes.
func parseDocument(text string) ([]docStep, error) {
	var steps []docStep
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		if command, ok := strings.CutPrefix(lines[i], "<!-- run: "); ok {
			steps = append(steps, docStep{line: i + 1, command: strings.TrimSuffix(command, " -->")})
			continue
		}
		if reply, ok := strings.CutPrefix(lines[i], "<!-- model: "); ok {
			steps = append(steps, docStep{line: i + 1, reply: strings.TrimSuffix(reply, " -->")})
			continue
		}
		info, ok := strings.CutPrefix(lines[i], "```")
		if !ok {
			continue
		}
		begin := i + 1
		for i = begin; lines[i] != "```"; i++ { // an unclosed block is visible in the rendered document
		}
		block, first := lines[begin:i], begin+1
		language, attribute, _ := strings.Cut(info, " ")
		name, isFile := strings.CutPrefix(attribute, "file=")
		switch {
		case isFile:
			steps = append(steps, docStep{line: first, file: name, content: strings.Join(block, "\n") + "\n"})
		case attribute == "output" && len(steps) > 0:
			last := &steps[len(steps)-1]
			last.expected, last.compared = block, true
		case language == "console" || language == "sh":
			steps = append(steps, parseCommands(block, first, language == "console")...)
		default:
			for n, line := range block {
				if strings.HasPrefix(line, "$ ") {
					return nil, fmt.Errorf("line %d: mark the block as ```console, so that its commands are run", first+n)
				}
			}
		}
	}
	return steps, nil
}

// parseCommands returns the commands of one block. With a prompt, other lines are output.
func parseCommands(block []string, first int, prompt bool) []docStep {
	var steps []docStep
	for n := 0; n < len(block); n++ {
		command, isCommand := strings.CutPrefix(block[n], "$ ")
		if prompt && !isCommand {
			if len(steps) > 0 {
				last := &steps[len(steps)-1]
				last.expected, last.compared = append(last.expected, block[n]), true
			}
			continue
		}
		step := docStep{line: first + n, command: command}
		for n+1 < len(block) && (strings.HasSuffix(step.command, `\`) || strings.Count(step.command, "'")%2 == 1) {
			n++
			step.command += "\n" + block[n]
		}
		if strings.TrimSpace(step.command) != "" {
			steps = append(steps, step)
		}
	}
	return steps
}

// docFigures finds the values of an output that differ from run to run. They match any
// other of their kind. Runs of spaces match each other, because the width of a column
// depends on the values in it.
//
//	…                            any text of the line; alone on a line, any lines
//	3.2 ms, "latency_ms":3.2     durations
//	confidence 0.93              confidences, which depend on the version of the classifier
//	2026-11-20T19:53:43Z         times, and days without a time
//	sha256:59894862574d          versions
//	UUIDs and trace ids          an id of the document is the same id of the output everywhere
//	pid 13360, id: 4711          processes, and events on a line of their own
func docFigures() *regexp.Regexp {
	return regexp.MustCompile(strings.Join([]string{
		`(?P<lines>(?m:^ *…$\n?))`, `(?P<text>…)`, `(?P<blank> {2,})`,
		`(?P<duration>\b\d+(?:\.\d+)? (?:ns|µs|ms|s)\b)`, `(?P<ms>_ms":[0-9.]+)`,
		`(?P<confidence>confidence"?[ :][0-9.]+|\b\d\.\d\d  lexical\b)`, `(?P<time>\b\d{4}-\d\d-\d\d(?:T[0-9:.]+Z| \d\d:\d\d)?\b|\b\d\d-\d\d \d\d:\d\d\b)`,
		`(?P<event>(?m:^id: \d+$))`, `(?P<version>sha256:[0-9a-f]+)`, `(?P<pid>\bpid \d+)`,
		`(?P<id>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{32}\b)`,
	}, "|"))
}

const docIDPattern = `[0-9a-f-]{32,36}`

// docFigurePatterns returns the expressions by the name of the group.
func docFigurePatterns() map[string]string {
	return map[string]string{
		"lines": `(?:.*\n)*?`, "text": `.*?`, "blank": ` +`, "duration": `\d+(?:\.\d+)? (?:ns|µs|ms|s)`, "ms": `_ms":[0-9.e-]+`,
		"confidence": `(?:confidence"?[ :][0-9.]+|\d\.\d\d +lexical)`, "time": `[0-9-]+(?:T[0-9:.]+Z| \d\d:\d\d)?`, "version": `sha256:[0-9a-f]+`, "pid": `pid \d+`, "event": `id: \d+`,
	}
}

// matchOutput compares an output with the lines of a document. It adds the ids of the document to
// ids, with the ids of the output.
func matchOutput(expected []string, got string, ids map[string]string) error {
	want := strings.TrimRight(joinJSON(expected), "\n ") + "\n"
	got = strings.TrimRight(regexp.MustCompile(`(?m)[ \r]+$`).ReplaceAllString(got, ""), "\n") + "\n"
	var pattern strings.Builder
	var bound []string // ids of the document, by group of the pattern
	figures, patterns, end := docFigures(), docFigurePatterns(), 0
	for _, m := range figures.FindAllStringSubmatchIndex(want, -1) {
		pattern.WriteString(regexp.QuoteMeta(want[end:m[0]]))
		end = m[1]
		for i, name := range figures.SubexpNames() {
			switch id, known := ids[want[m[0]:m[1]]]; {
			case name == "" || m[2*i] < 0:
			case name == "id" && known:
				pattern.WriteString(regexp.QuoteMeta(id))
			case name == "id":
				pattern.WriteString("(" + docIDPattern + ")")
				bound = append(bound, want[m[0]:m[1]])
			default:
				pattern.WriteString(patterns[name])
			}
		}
	}
	pattern.WriteString(regexp.QuoteMeta(want[end:]))
	m := regexp.MustCompile(`^` + pattern.String() + `$`).FindStringSubmatch(got)
	if m == nil {
		return fmt.Errorf("got:\n%s\nwant, as in the document:\n%s", got, want)
	}
	for i, id := range bound {
		ids[id] = m[i+1]
	}
	return nil
}

// joinJSON joins the lines of a JSON value, which documents break for readability.
func joinJSON(lines []string) string {
	var b strings.Builder
	inJSON := false
	for i, line := range lines {
		switch {
		case inJSON && strings.HasPrefix(line, " "):
			line = strings.TrimLeft(line, " ")
		case i > 0:
			b.WriteByte('\n')
			fallthrough
		default:
			inJSON = strings.HasPrefix(line, "{") || strings.HasPrefix(line, "data: {")
		}
		b.WriteString(line)
	}
	return b.String()
}

func TestMatchOutput(t *testing.T) {
	const id, other = "01a1f94b-5df5-7774-98cf-dd2d17c638f6", "11111111-2222-7333-8444-555555555555"
	tests := []struct {
		name, expected, got string
		ok                  bool
	}{
		{"equal", "a\nb", "a\nb\n", true},
		{"other text", "a", "b", false},
		{"more lines", "a", "a\nb", false},
		{"fewer lines", "a\nb", "a", false},
		{"text omitted", "{…,\"status\":401}", "{\"x\":1,\"status\":401}", true},
		{"lines omitted", "a\n…\nd", "a\nb\nc\nd", true},
		{"no lines omitted", "a\n…\nd", "a\nd", true},
		{"end omitted", "a\n  …", "a\nb\nc", true},
		{"a duration", "a 18 µs", "a 1.2 ms", true},
		{"a confidence", "x, confidence 1.00 (lexical)", "x, confidence 0.87 (lexical)", true},
		{"a score", "score 0.80", "score 0.50", false},
		{"a version", "sha256:59894862574d", "sha256:0123", true},
		{"columns", "a    b", "a  b", true},
		{"one id", id + " " + id, other + " " + other, true},
		{"JSON on several lines", "{\"a\":1,\n \"b\":2}", "{\"a\":1,\"b\":2}", true},
		{"carriage return", "HTTP/1.1 200 OK\n…", "HTTP/1.1 200 OK\r\nDate: x\r\n", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := matchOutput(strings.Split(tt.expected, "\n"), tt.got, map[string]string{}); (err == nil) != tt.ok {
				t.Errorf("got %v, want success: %v", err, tt.ok)
			}
		})
	}
	ids := map[string]string{}
	if err := matchOutput([]string{id}, other, ids); err != nil || ids[id] != other {
		t.Errorf("got %v and ids %v, want %s", err, ids, other)
	}
	if err := matchOutput([]string{id}, "33333333-2222-7333-8444-555555555555", ids); err == nil {
		t.Error("got success for another value of a known id, want an error")
	}
}

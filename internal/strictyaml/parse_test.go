package strictyaml

import (
	"strings"
	"testing"
)

func TestParse_RejectsUnsupportedYAML(t *testing.T) {
	tests := []struct {
		name, file string
		want       []string
	}{
		{"empty", "", []string{"1:1: is empty"}},
		{"only comments", "# a\n# b\n", []string{"1:1: is empty"}},
		{"only white space", " \n\n", []string{"1:1: is empty"}},
		{"null", "~\n", []string{"1:1: is empty"}},
		{"only a marker", "---\n", []string{"1:1: is empty"}},

		{"second document", "version: 1\n---\nversion: 2\n", []string{`2:1: a second document starts here; a file holds one: remove the "---"`}},
		{"empty second document", "version: 1\n---\n", []string{`2:1: a second document starts here; a file holds one: remove the "---"`}},
		{"broken second document", "version: 1\n---\na: [\n", []string{`3:4: the list that [ opens here is not closed: add ], or remove the [ (did not find expected node content)`}},
		{"list not closed at the end", "version: 1\nname: [ # all\n\n", []string{`2:7: the list that [ opens here is not closed: add ], or remove the [ (did not find expected node content)`}},
		{"list not closed after a comma", "version: 1\nname: [\"[\", {a: b},\n", []string{`2:7: the list that [ opens here is not closed: add ], or remove the [ (did not find expected node content)`}},
		{"mapping not closed at the end", "version: 1\nnested: [x, {\n", []string{`2:13: the mapping that { opens here is not closed: add }, or remove the { (did not find expected node content)`}},
		{"list in the place of a key", "version: 1\n[\n", []string{`2:1: the list that [ opens here is not closed: add ], or remove the [ (could not find expected ':')`}},
		{"list of several lines not closed", "nested:\n  a: see [1\n  b: [x,\n    # more\n    y,\n", []string{`3:6: the list that [ opens here is not closed: add ], or remove the [ (did not find expected node content)`}},
		{"closing nothing after a bracket in a text", "name: see [1\non: ,\n", []string{`2:1: a closing or separating character is in the place of a value (did not find expected node content)`}},
		{"directive", "# c\n\n%YAML 1.2\n---\nversion: 1\n", []string{"3:1: directives (%YAML) are not supported; remove the line"}},
		{"tag directive", "%TAG ! tag:x,2000:\n---\nversion: 1\n", []string{"1:1: directives (%TAG) are not supported; remove the line"}},

		{"anchor and alias", "name: &a x\nplain: *a\n", []string{
			"1:7: anchors (&a) are not supported; remove it",
			"2:8: aliases (*a) are not supported; write the value out",
		}},
		{"alias of nothing", "name: x\nplain: *nope\n", []string{"2:8: aliases (*nope) are not supported; write the value out"}},
		{"alias of itself", "words: &a [*a]\n", []string{
			"1:8: anchors (&a) are not supported; remove it",
			"1:12: aliases (*a) are not supported; write the value out",
		}},
		{"alias as a key", "name: &a version\n*a : 1\n", []string{
			"1:7: anchors (&a) are not supported; remove it",
			"2:1: aliases (*a) are not supported; write the value out",
		}},
		{"merge key", "limits:\n  <<: {max_tokens: 1}\n", []string{"2:3: merge keys (<<) are not supported; write the keys out"}},
		{"quoted merge key is a key", "limits:\n  '<<': {max_tokens: 1}\n", []string{`2:3: unknown key "<<"; known here: max_tokens, intents, domains`}},
		{"standard tag", "name: !!str 1\n", []string{"1:7: tags (!!str) are not supported; remove it"}},
		{"python tag", "name: !!python/object/apply:os.system [id]\n", []string{"1:7: tags (!!python/object/apply:os.system) are not supported; remove it"}},
		{"local tag on a mapping", "limits: !mine {max_tokens: 1}\n", []string{"1:9: tags (!mine) are not supported; remove it"}},
		{"verbatim tag on a key", "!<tag:yaml.org,2002:str> name: x\n", []string{"1:1: tags (!!str) are not supported; remove it"}},
		{"binary", "name: !!binary aGk=\n", []string{"1:7: tags (!!binary) are not supported; remove it"}},

		{"duplicate", "version: 1\nname: x\nversion: 1\n", []string{`3:1: duplicate key "version"; it is also on line 1`}},
		{"duplicate in another spelling", "version: 1\n\"ver\\x73ion\": 1\n", []string{`2:1: duplicate key "version"; it is also on line 1`}},
		{"duplicate deep inside", "clients:\n  a: {}\n  b: {}\n  a: {}\n", []string{`4:3: duplicate key "a"; it is also on line 2`}},
		{"number as a key", "clients:\n  1: {}\n", []string{`2:3: a key must be text, got the number 1; quote it: "1"`}},
		{"null as a key", "clients:\n  ~: {}\n", []string{`2:3: a key must be text, got nothing; quote it: "~"`}},
		{"boolean as a key", "clients: {true: {}}\n", []string{`1:11: a key must be text, got the boolean true; quote it: "true"`}},
		{"list as a key", "? [a]\n: b\n", []string{"1:3: a key must be a word, not a list"}},
		{"mapping as a key", "{{a: b}: c}\n", []string{"1:2: a key must be a word, not a mapping"}},

		{"tab", "limits:\n\tmax_tokens: 1\n", []string{"2:1: a tab cannot indent; use spaces"}},
		{"bare star", "words: [a, *]\n", []string{"1:12: * and & are special in YAML; quote a value that begins with one, as in \"*\" (did not find expected alphabetic or numeric character)"}},
		{"tab after spaces", "limits:\n  max_tokens: 1\n  \tintents: []\n", []string{"3:3: a tab cannot indent; use spaces"}},
		{"NUL", "name: \"a\x00b\"\n", []string{`1:9: contains the control character "\x00"; remove it`}},
		{"escape character", "version: 1\nname: é\x1b[0m\n", []string{`2:8: contains the control character "\x1b"; remove it`}},
		{"byte order mark inside", "name: a\ufeff\n", []string{`1:8: contains the control character "\ufeff"; remove it`}},
		{"Latin-1", "version: 1\nname: caf\xe9\n", []string{"2:10: is not valid UTF-8 here (byte 0xe9)"}},
		{"UTF-16, little end first", "\xff\xfea\x00:\x00", []string{"1:1: is UTF-16 or UTF-32; save it as UTF-8"}},
		{"UTF-16, big end first", "\xfe\xff\x00a\x00:", []string{"1:1: is UTF-16 or UTF-32; save it as UTF-8"}},
		{"UTF-16 without a mark", "a\x00:\x00 \x00b\x00", []string{"1:1: looks like UTF-16; save it as UTF-8"}},

		{"indentation", "limits:\n    max_tokens: 1\n  intents: []\n", []string{
			"3:3: the indentation does not fit, or something is wrong just before (did not find expected key)",
		}},
		{"two colons", "version: 1\nname: a: b\n", []string{
			`2:1: a second ": " on one line, or wrong indentation; quote a value that contains ": " (mapping values are not allowed in this context)`,
		}},
		{"no colon", "version: 1\nname\non: true\n", []string{`2:1: there is no ": " after this key (could not find expected ':')`}},
		{"open list", "version: 1\nwords: [a,\n  b\nname: c\n", []string{
			"2:1: the list that [ opens is not closed, or a comma is missing (did not find expected ',' or ']')",
		}},
		{"question mark in a list", "version: 1\nwords: [a, \"b?\", who made it?, c]\n", []string{
			"2:29: a ? ends an unquoted text inside [ ] and { }; quote the text (did not find expected ',' or ']')",
		}},
		{"question mark in a mapping of several lines", "lists: { # sure?\n  a: 'b?', c: is it? }\n", []string{
			"2:20: a ? ends an unquoted text inside [ ] and { }; quote the text (did not find expected ',' or '}')",
		}},
		{"text after a quote", "words:\n  - 'it's'\n", []string{
			"2:3: a list item must start with \"- \", in line with the others, and nothing may follow a closing quote (did not find expected '-' indicator)",
		}},
		{"open quote", "version: 1\nname: \"x\n", []string{"2:1: a quoted text is not closed (found unexpected end of stream)"}},
		{"at sign", "version: 1\nname: @x\n", []string{
			"2:1: a value cannot start with this character; quote it (found character that cannot start any token)",
		}},
		{"backslash", "name: \"C:\\q\"\n", []string{`1:1: inside double quotes a backslash must be written \\ (found unknown escape character)`}},
		{"closing nothing", "name: ]\n", []string{"1:1: a closing or separating character is in the place of a value (did not find expected node content)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkErrors(t, Decode("f.yaml", []byte(tt.file), new(settings)), tt.want...)
		})
	}
}

func TestParse_RejectsDeepNesting(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	d, err := Parse("f.yaml", nested(MaxDepth+1)) // the innermost list has depth MaxDepth
	if err != nil || d.Err() != nil {
		t.Errorf("%d levels: got errors %v and %v, want none", MaxDepth, err, d.Err())
	}
	d, err = Parse("f.yaml", nested(MaxDepth+2))
	if err != nil {
		t.Fatal(err)
	}
	checkErrors(t, d.Err(), "1:66: nests deeper than 64 levels")

	if _, err = Parse("f.yaml", nested(1<<20)); err == nil {
		t.Error("a million levels: got no error")
	}
	var block strings.Builder
	for i := range 200 {
		block.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	if d, err = Parse("f.yaml", []byte(block.String())); err != nil {
		t.Fatal(err)
	}
	checkErrors(t, d.Err(), "66:66: nests deeper than 64 levels")
}

// An alias bomb is not expanded, because aliases are not followed.
func TestParse_RejectsAliasBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x]\n")
	for i := range 30 {
		n := string(rune('0'+(i+1)/10)) + string(rune('0'+(i+1)%10))
		p := "0"
		if i > 0 {
			p = string(rune('0'+i/10)) + string(rune('0'+i%10))
		}
		b.WriteString("a" + n + ": &a" + n + " [*a" + p + ", *a" + p + ", *a" + p + "]\n")
	}
	d, err := Parse("f.yaml", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := d.count, 31+90; got != want {
		t.Errorf("got %d mistakes, want %d: one for each anchor and each alias", got, want)
	}
}

func TestParse_RejectsLargeInput(t *testing.T) {
	_, err := Parse("f.yaml", make([]byte, MaxBytes+1))
	checkErrors(t, err, "is 67108865 bytes long; at most 67108864 are read")
}

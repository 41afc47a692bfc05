package golden

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// writeFiles writes files by name into a new directory.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A granted agent is not in the file, so a case cannot expect it.
func TestReadYAML_RejectsSelfRegisteredAgents(t *testing.T) {
	s, err := capabilities.Parse("capabilities.yaml", []byte(`
clients:
  loans_agent: { match: { intent: [lend], domains: [prints] } }
grants:
  scan_agent: { intents: [scan], domains: [digital] }
  loans_agent: { intents: [lend] }
`))
	if err != nil {
		t.Fatal(err)
	}
	cases := "cases:\n  - { id: a, input: x, expect: { agents: [scan_agent] } }\n  - { id: b, input: y, expect: { agents: [loans_agent] } }\n"
	_, err = ReadYAML("c.yaml", []byte(cases), NewDeclaredNames(s))
	want := `c.yaml:2:43: scan_agent registers itself, and the registry has only a grant for it: name a registry that declares it under clients`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestReadYAML(t *testing.T) {
	got, err := ReadYAML("cases.yaml", []byte(`
cases:
  - id: all
    input: "Revise este notebook Databricks e aponte custo desnecessário"
    history:
      - { role: user, content: "hello" }
      - { role: assistant, content: "hi" }
    expect: { outcome: dispatch, agents: [quality_agent], intent: databricks_review, domains: [databricks] }
    alternates: [[quality_agent, billing_agent]]
    split: test
    tags: [pt]
    llm: '{"intent":'
  - { id: nobody, input: sing, expect: { outcome: fallback, agents: [] }, llm: [a, b] }
`), NewDeclaredNames(registry(t)))
	if err != nil {
		t.Fatal(err)
	}
	want := []Case{
		{
			ID: "all", Input: "Revise este notebook Databricks e aponte custo desnecessário",
			History:    []Message{{"user", "hello"}, {"assistant", "hi"}},
			Expect:     Expect{Outcome: Dispatch, Agents: []string{"quality_agent"}, Intent: "databricks_review", Domains: []string{"databricks"}},
			Alternates: [][]string{{"quality_agent", "billing_agent"}}, Split: Test, Tags: []string{"pt"},
			LLM: ScriptedReplies{`{"intent":`}, File: "cases.yaml", Line: 3,
		},
		{
			ID: "nobody", Input: "sing", Expect: Expect{Outcome: AnyFallback, Agents: []string{}},
			LLM: ScriptedReplies{"a", "b"}, File: "cases.yaml", Line: 13,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cases (-want +got):\n%s", diff)
	}
}

func TestReadRows(t *testing.T) {
	tests := []struct {
		name, file, content string
		want                []Case
	}{
		{
			"jsonl", "rows.jsonl",
			`{"id":"a","input":"review","expect":{"agents":["quality_agent"],"outcome":"dispatch"},"llm":"x"}` + "\n\n" +
				`{"id":"b","input":"sing","expect":{"agents":[]},"split":"train","tags":["en"],"llm":["x","y"]}`,
			[]Case{
				{ID: "a", Input: "review", Expect: Expect{Outcome: Dispatch, Agents: []string{"quality_agent"}}, LLM: ScriptedReplies{"x"}, File: "rows.jsonl", Line: 1},
				{ID: "b", Input: "sing", Expect: Expect{Agents: []string{}}, Split: Train, Tags: []string{"en"}, LLM: ScriptedReplies{"x", "y"}, File: "rows.jsonl", Line: 3},
			},
		},
		{
			"tsv with a duplicate text and CRLF", "rows.tsv",
			"review this\tcode_review\tpython\r\nreview this\tcode_review\t\r\n\r\nsing\tunknown\tunknown\n",
			[]Case{
				{ID: "rows-bca26d42", Input: "review this", Expect: Expect{Intent: "code_review", Domains: []string{"python"}}, File: "rows.tsv", Line: 1},
				{ID: "rows-bca26d42-2", Input: "review this", Expect: Expect{Intent: "code_review"}, File: "rows.tsv", Line: 2},
				{ID: "rows-6342d064", Input: "sing", Expect: Expect{Intent: "unknown", Domains: []string{"unknown"}}, File: "rows.tsv", Line: 4},
			},
		},
		{
			"csv of the source document", "pairs.csv",
			"\ufeffinput,expected_agent\n\"review, please\",quality_agent\nboth,quality_agent; billing_agent\nsing,\n",
			[]Case{
				{ID: "pairs-1e9e7901", Input: "review, please", Expect: Expect{Outcome: Dispatch, Agents: []string{"quality_agent"}}, File: "pairs.csv", Line: 2},
				{ID: "pairs-ff777205", Input: "both", Expect: Expect{Outcome: Dispatch, Agents: []string{"quality_agent", "billing_agent"}}, File: "pairs.csv", Line: 3},
				{ID: "pairs-6342d064", Input: "sing", Expect: Expect{Outcome: AnyFallback}, File: "pairs.csv", Line: 4},
			},
		},
		{
			"csv with all columns", "full.csv",
			"id,expected_agent,input,tags,split,known_failure,tenant\nx,quality_agent,review,pt;long,train,too short,acme\n",
			[]Case{{
				ID: "x", Input: "review", Expect: Expect{Outcome: Dispatch, Agents: []string{"quality_agent"}},
				Tags: []string{"pt", "long"}, Split: Train, KnownFailure: "too short", Tenant: "acme", File: "full.csv", Line: 2,
			}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := caseFormats()[filepath.Ext(tt.file)](tt.file, []byte(tt.content), NewDeclaredNames(registry(t)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("cases (-want +got):\n%s", diff)
			}
		})
	}
}

// Errors contain the position and the correction.
func TestReaders_Errors(t *testing.T) {
	tests := []struct{ name, file, content, want string }{
		{"known failure without a reason", "c.yaml", "cases:\n  - { id: a, input: x, expect: { agents: [] }, known_failure: ' ' }\n", "c.yaml:2:63: is the reason why the case fails, 1 to 500 characters"},
		{"unknown key", "c.yaml", "cases:\n  - id: a\n    inputs: x\n", `c.yaml:3:5: unknown key "inputs"; did you mean "input"?`},
		{"unknown nested key", "c.yaml", "cases:\n  - id: a\n    input: x\n    expect: { agent: [quality_agent] }\n", `c.yaml:4:15: unknown key "agent"; did you mean "agents"?`},
		{"no cases", "c.yaml", "cases: []\n", "c.yaml:1:8: has no cases: write `cases:` and a list of them"},
		{"unknown agent", "c.yaml", "cases:\n  - { id: a, input: x, expect: { agents: [qualty_agent] } }\n", `c.yaml:2:43: the registry has no agent "qualty_agent"; did you mean "quality_agent"?`},
		{"unknown agent of an alternate", "c.yaml", "cases:\n  - { id: a, input: x, expect: { agents: [] }, alternates: [[zzz]] }\n", `c.yaml:2:62: the registry has no agent "zzz"; it has billing_agent, quality_agent, rag_agent`},
		{"alternates without agents", "c.yaml", "cases:\n  - { id: a, input: x, expect: { outcome: dispatch }, alternates: [[rag_agent]] }\n", `c.yaml:2:67: are alternates of expect.agents, which this case does not name: add it`},
		{"unknown intent", "c.yaml", "cases:\n  - { id: a, input: x, expect: { intent: code_revew } }\n", `c.yaml:2:42: the registry has no intent "code_revew"; did you mean "code_review"?`},
		{"unknown domain", "c.yaml", "cases:\n  - { id: a, input: x, expect: { domains: [cobol] } }\n", `c.yaml:2:44: the registry has no domain "cobol"; it has azure, databricks, docs, python, unknown`},
		{"unknown outcome", "c.yaml", "cases:\n  - { id: a, input: x, expect: { outcome: dispach } }\n", `c.yaml:2:43: expect.outcome: must be dispatch, clarify, fallback_a, fallback_b, fallback_c or fallback, got "dispach"; did you mean "dispatch"?`},
		{"unknown split", "c.yaml", "cases:\n  - { id: a, input: x, expect: { outcome: clarify }, split: holdout }\n", `c.yaml:2:61: split: must be train, validation or test, got "holdout"`},
		{"agents with a fallback", "c.yaml", "cases:\n  - { id: a, input: x, expect: { outcome: clarify, agents: [rag_agent] } }\n", `c.yaml:2:60: are chosen when the outcome is dispatch only, not clarify: leave one of them out`},
		{"nothing expected", "c.yaml", "cases:\n  - { id: a, input: x }\n", `c.yaml:2:5: a case needs something to expect: outcome, agents, intent, domains or reason`},
		{"no id", "c.yaml", "cases:\n  - { input: x, expect: { outcome: clarify } }\n", `c.yaml:2:5: a case needs an id: it is how a baseline knows it again`},
		{"white space in an id", "c.yaml", "cases:\n  - { id: a b, input: x, expect: { outcome: clarify } }\n", `c.yaml:2:11: an id is 1 to 128 characters without white space, got "a b"`},
		{"no input", "c.yaml", "cases:\n  - { id: a, input: ' ', expect: { outcome: clarify } }\n", `c.yaml:2:21: a case needs an input: the text of the request`},
		{"unknown role", "c.yaml", "cases:\n  - { id: a, input: x, history: [{ role: system, content: y }], expect: { outcome: clarify } }\n", `c.yaml:2:42: history[0].role: must be user or assistant, got "system"`},
		{"white space in a tenant", "c.yaml", "cases:\n  - { id: a, input: x, tenant: 'acme ', expect: { outcome: clarify } }\n", `c.yaml:2:32: a tenant has no white space at its ends, got "acme "`},
		{"empty script", "c.yaml", "cases:\n  - { id: a, input: x, llm: [], expect: { outcome: clarify } }\n", `c.yaml:2:29: is an empty list: write the replies of the model, or leave it out`},
		{"empty tag", "c.yaml", "cases:\n  - { id: a, input: x, tags: [''], expect: { outcome: clarify } }\n", `c.yaml:2:31: a tag is 1 to 64 characters without white space, got ""`},
		{"list without its key", "c.yaml", "- { id: a, input: x, expect: { outcome: clarify } }\n", "c.yaml:1:1: must be a mapping with the key cases: write `cases:` above the list"},
		{"dispatch without agents", "c.yaml", "cases:\n  - { id: a, input: x, expect: { outcome: dispatch, agents: [] } }\n", `c.yaml:2:61: are none, and a dispatch has at least one: name it, or leave one of them out`},
		{"not YAML", "c.yaml", "cases: [", `c.yaml:1:`},

		{"jsonl: unknown member", "c.jsonl", "\n" + `{"id":"a","inptu":"x"}`, `c.jsonl:2:`},
		{"jsonl: unknown member with suggestion", "c.jsonl", `{"id":"a","inptu":"x"}`, `did you mean "input"?`},
		{"jsonl: unknown agent", "c.jsonl", `{"id":"a","input":"x","expect":{"agents":["zzz"]}}`, `c.jsonl:1:1: the registry has no agent "zzz"`},
		{"jsonl: invalid script", "c.jsonl", `{"id":"a","input":"x","llm":7}`, "must be a string, or an array of strings"},
		{"jsonl: not JSON", "c.jsonl", `{"id":`, `c.jsonl:1:7: `},
		{"jsonl: empty", "c.jsonl", "\n\n", "c.jsonl:1:1: has no cases"},

		{"tsv: a missing domain", "c.tsv", "a\tcode_review\tpython\nreview\tcode_review\n", "c.tsv:2:19: column 3 (domain) is missing: a line is text<TAB>intent<TAB>domain; end it with a tab where there is no domain to check"},
		{"tsv: a missing intent", "c.tsv", "review\n", "c.tsv:1:7: column 2 (intent) is missing"},
		{"tsv: an empty intent", "c.tsv", "review\t\tpython\n", "c.tsv:1:8: column 2 (intent) is empty: name an intent of the registry, or unknown"},
		{"tsv: too many columns", "c.tsv", "a\tb\tc\td\n", "c.tsv:1:7: has 4 columns"},
		{"tsv: unknown intent", "c.tsv", "revisão\tcode_revew\tpython\n", `c.tsv:1:9: the registry has no intent "code_revew"; did you mean "code_review"?`},
		{"tsv: unknown domain", "c.tsv", "revisão\tcode_review\tpyton\n", `c.tsv:1:21: the registry has no domain "pyton"; did you mean "python"?`},
		{"tsv: not UTF-8", "c.tsv", "a\xffb\tcode_review\tpython\n", "c.tsv:1:1: holds bytes that are not UTF-8"},

		{"csv: empty", "c.csv", "", "c.csv:1:1: is empty: the first line must be the header input,expected_agent"},
		{"csv: no header", "c.csv", "review,quality_agent\n", `c.csv:1:1: unknown column "review"`},
		{"csv: misspelt column", "c.csv", "input,expected_agnet\nx,quality_agent\n", `c.csv:1:7: unknown column "expected_agnet"; did you mean "expected_agent"?`},
		{"csv: missing column", "c.csv", "input\nx\n", `c.csv:1:1: column "expected_agent" is missing`},
		{"csv: duplicate column", "c.csv", "input,expected_agent,input\n", `c.csv:1:22: column "input" occurs twice`},
		{"csv: too many fields", "c.csv", "input,expected_agent\nreview, please,quality_agent\n", "c.csv:2:1: has 3 columns, the header has 2: put a text with a comma in double quotes"},
		{"csv: unknown agent", "c.csv", "input,expected_agent\nreview,qualty_agent\n", `c.csv:2:8: the registry has no agent "qualty_agent"; did you mean "quality_agent"?`},
		{"csv: open quote", "c.csv", "input,expected_agent\n\"review,quality_agent\n", "c.csv:2:"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cases, err := caseFormats()[filepath.Ext(tt.file)](tt.file, []byte(tt.content), NewDeclaredNames(registry(t)))
			if err == nil {
				t.Fatalf("got %d cases, want an error with %q", len(cases), tt.want)
			}
			if _, ok := errors.AsType[strictyaml.Errors](err); !ok {
				t.Errorf("got a %T, want strictyaml.Errors", err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant an error with %s", err, tt.want)
			}
		})
	}
}

// The number of errors is bounded.
func TestReaders_BoundErrors(t *testing.T) {
	_, err := ReadTSV("c.tsv", []byte(strings.Repeat("x\n", 100)), nil)
	list, ok := errors.AsType[strictyaml.Errors](err)
	if !ok || len(list) != strictyaml.MaxErrors+1 || list[strictyaml.MaxErrors].Detail != "… and 80 more" {
		t.Errorf("got %v, want %d errors and the number of the others", err, strictyaml.MaxErrors)
	}
}

func TestLoadCases(t *testing.T) {
	good := "cases:\n  - { id: %, input: x, expect: { outcome: dispatch } }\n"
	dir := writeFiles(t, map[string]string{
		"b.yaml":                  strings.ReplaceAll(good, "%", "b1"),
		"a.yml":                   strings.ReplaceAll(good, "%", "a1"),
		"deep/c.tsv":              "x\tcode_review\tpython\n",
		"gemini" + cassetteSuffix: "not a case\n",
		"README.md":               "not a case\n",
		".hidden/d.yaml":          "not a case\n",
		"twice/e.yaml":            strings.ReplaceAll(good, "%", "a1"),
		"empty/readme.txt":        "",
		"other/registry.yaml":     "clients:\n  a: { match: { intent: [x] } }\n",
		"broken/case.yaml":        "case:\n  - { id: a1 }\n",
	})
	ids := func(paths ...string) (list []string, err error) {
		for i := range paths {
			paths[i] = filepath.Join(dir, paths[i])
		}
		cases, err := LoadCases(paths, nil)
		for i := range cases {
			list = append(list, cases[i].ID)
		}
		return list, err
	}
	got, err := ids("b.yaml", "deep", "a.yml")
	if diff := cmp.Diff([]string{"b1", "deep-c-2d711642", "a1"}, got); err != nil || diff != "" {
		t.Errorf("error %v, ids (-want +got):\n%s", err, diff)
	}
	for _, tt := range []struct{ name, path, want string }{
		{"duplicate id", ".", `twice/e.yaml:2:1: the id "a1" is taken by the case at ` + dir + "/a.yml:2: choose another"},
		{"directory without cases", "empty", "empty: holds no file of cases"},
		{"directory with a registry", "other", "other: holds no file of cases"},
		{"registry by name", "other/registry.yaml", `other/registry.yaml: is a capability registry, not a file of golden cases`},
		{"misspelt key", "broken", `case.yaml:1:1: unknown key "case"; did you mean "cases"?`},
		{"other kind of file", "README.md", "README.md: is no file of cases: its name must end in"},
		{"missing file", "none.yaml", "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := ids(tt.path); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %s", err, tt.want)
			}
		})
	}
}

func TestCaseLoader_ReportsSkippedFiles(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"a.yaml":         oneCase("a"),
		"caprouter.yaml": "# configuration\nhttp: { address: x }\n",
		"costs.csv":      "service,cost\nvm,1\n",
		"replies.jsonl":  `{"key":"1","provider":"p","reply":"x"}` + "\n",
		"README.md":      "cases:\n",
	})
	var skipped []string
	l := CaseLoader{Skipped: func(file, why string) { skipped = append(skipped, filepath.Base(file)+": "+why) }}
	cases, err := l.Load([]string{dir})
	if err != nil || len(cases) != 1 {
		t.Fatalf("got %d cases, error %v; want one", len(cases), err)
	}
	want := []string{
		"caprouter.yaml: it has no key cases", "costs.csv: its header has no column input", "replies.jsonl: its lines have no member input",
	}
	if diff := cmp.Diff(want, skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	for _, file := range []string{"caprouter.yaml", "costs.csv", "replies.jsonl"} {
		if _, err := l.Load([]string{filepath.Join(dir, file)}); err == nil {
			t.Errorf("%s by name: got no error, want one", file)
		}
	}
}

// A file that is probably meant as cases is not another kind of file.
func TestOtherKind_KeepsMalformedCaseFiles(t *testing.T) {
	for file, content := range map[string]string{
		"list.yaml": "- { id: a }\n", "flow.yaml": "{cases: []}\n", "quoted.yaml": "\"cases\":\n", "empty.yaml": "", "syntax.yaml": "cases: [\n",
		"typo.csv": "\ufeffinput,agent\n", "agent.csv": "text,expected_agents\n", "empty.csv": "",
		"typo.jsonl": `{"inputs":"x"}`, "empty.jsonl": "{}\n", "text.jsonl": "hello\n", "any.tsv": "a\tb\n",
	} {
		if why := otherKind(file, []byte(content)); why != "" {
			t.Errorf("%s: got %q, want a case file", file, why)
		}
	}
}

// The errors of all files are returned together.
func TestLoadCases_ErrorsOfAllFiles(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.tsv": "x\n", "b.jsonl": "{}\n", "c.yaml": "cases:\n  - { id: a, input: x, expect: { outcome: dispatch } }\n"})
	_, err := LoadCases([]string{dir}, nil)
	list, ok := errors.AsType[strictyaml.Errors](err)
	var files []string
	for _, e := range list {
		if name := filepath.Base(e.File); !slices.Contains(files, name) {
			files = append(files, name)
		}
	}
	if diff := cmp.Diff([]string{"a.tsv", "b.jsonl"}, files); !ok || diff != "" {
		t.Errorf("got %v; files with mistakes (-want +got):\n%s", err, diff)
	}
}

func TestFilterCases(t *testing.T) {
	cases := []Case{
		{ID: "a", Split: Train, Tags: []string{"pt"}},
		{ID: "b", Split: Test, Tags: []string{"pt", "long"}},
		{ID: "c", Tags: []string{"en"}},
	}
	tests := []struct {
		name   string
		filter Filter
		want   string
	}{
		{"no filter", Filter{}, "abc"},
		{"a split", Filter{Splits: []string{Train}}, "a"},
		{"two splits", Filter{Splits: []string{Train, Test}}, "ab"},
		{"all of two tags", Filter{Tags: []string{"pt", "long"}}, "b"},
		{"ids", Filter{IDs: []string{"c", "a"}}, "ac"},
		{"nothing", Filter{Splits: []string{Test}, Tags: []string{"en"}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got strings.Builder
			for _, c := range FilterCases(cases, tt.filter) {
				got.WriteString(c.ID)
			}
			if got.String() != tt.want {
				t.Errorf("got %q, want %q", got.String(), tt.want)
			}
		})
	}
}

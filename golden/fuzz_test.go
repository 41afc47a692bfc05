package golden

import (
	"bytes"
	"os"
	"testing"
	"unicode/utf8"
)

// FuzzCases checks that a file is accepted or rejected with a position, that accepted cases are
// valid and stable, and that they are not taken for a file of another kind.
func FuzzCases(f *testing.F) {
	for _, name := range []string{"testdata/chaos.yaml", "../examples/golden/cases.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(0, string(data))
	}
	f.Add(0, everyOutcome)
	f.Add(1, "input,expected_agent\n\"review, please\",quality_agent\nx,\n")
	f.Add(1, "id,expected_agent,input,tags,split\nx,a;b,\"a\nb\",pt,train\n")
	f.Add(2, `{"id":"a","input":"review","expect":{"agents":["quality_agent"]},"llm":["x",""]}`)
	f.Add(2, `{"id":"a","input":"x","history":[{"role":"user","content":"y"}],"expect":{"domains":[]},"alternates":[["a"]]}`)
	f.Add(3, "review this\tcode_review\tpython\nx\tunknown\t\n")
	formats := []string{".yaml", ".csv", ".jsonl", ".tsv"}
	names := &DeclaredNames{Agents: []string{"quality_agent"}, Intents: []string{"code_review", "unknown"}, Domains: []string{"python"}}
	f.Fuzz(func(t *testing.T, format int, content string) {
		ext := formats[uint(format)%uint(len(formats))]
		for _, known := range []*DeclaredNames{nil, names} {
			cases, err := caseFormats()[ext]("c"+ext, []byte(content), known)
			if err != nil {
				if len(cases) > 0 || err.Error() == "" {
					t.Fatalf("got %d cases with the error %q", len(cases), err)
				}
				continue
			}
			if why := otherKind("c"+ext, []byte(content)); why != "" {
				t.Fatalf("got a case file skipped: %s", why)
			}
			ids := map[string]bool{}
			for i := range cases {
				c := &cases[i]
				if c.ID == "" || c.Input == "" || !utf8.ValidString(c.Input) || c.Line < 1 {
					t.Fatalf("got invalid case %+v", c)
				}
				if ext != ".yaml" && ext != ".jsonl" && c.ID == missingID {
					t.Fatalf("got a case without an id: %+v", c)
				}
				if e := c.dryRunRequest().Validate(); e != nil {
					t.Fatalf("got a case that is not a valid request: %v", e)
				}
				ids[c.ID] = true
			}
			again, err := caseFormats()[ext]("c"+ext, []byte(content), known)
			if err != nil || len(again) != len(cases) {
				t.Fatalf("second read: got %d cases and %v, want %d", len(again), err, len(cases))
			}
		}
	})
}

// FuzzCassette checks that a cassette that was read is written unchanged.
func FuzzCassette(f *testing.F) {
	f.Add([]byte(`{"key":"a","provider":"p","model":"m","prompt_version":"v","purpose":"classify","reply":"x","tokens":{"input":0,"output":0}}`))
	f.Add([]byte(`{"key":"a","provider":"p","model":"m","prompt_version":"v","purpose":"classify","reply":"","truncated":true,"tokens":{"input":1,"output":2,"thinking":1},"reason":"llm_blocked","detail":"d"}` + "\n\n"))
	f.Add([]byte("\ufeff{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parseCassette("c.jsonl", data)
		if err != nil {
			return
		}
		var first, second bytes.Buffer
		if err := c.Write(&first); err != nil {
			t.Fatal(err)
		}
		again, err := parseCassette("c.jsonl", first.Bytes())
		if err != nil {
			t.Fatalf("read the written cassette: %v", err)
		}
		if err := again.Write(&second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("got %q, error %v, want %q", second.Bytes(), err, first.Bytes())
		}
	})
}

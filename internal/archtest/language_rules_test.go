package archtest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckProse_CountsPerThousandWords(t *testing.T) {
	limits := proseLimits{kind: "comments", maxIdiom: 0.3, minConditions: 5}
	plain := strings.Repeat("Return an error if the key is unknown. ", 100)
	tests := []struct {
		name  string
		texts []prose
		want  []string // the start of each message
	}{
		{"plain", []prose{{"a.go:1", plain}}, nil},
		{"no text", nil, []string{"comments: found no text"}},
		{"indefinite person", []prose{{"a.go:1", plain}, {"b.go:2", "Nobody, or somebody."}}, []string{"comments: 2.4"}},
		{"program that speaks", []prose{{"a.go:1", plain}, {"b.go:2", "The file says so."}}, []string{"comments: 1.2"}},
		{"no conditions", []prose{{"a.go:1", "Return the value."}}, []string{"comments: \"if\" 0.00"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := checkProse(limits, tt.texts)
			if len(got) != len(tt.want) {
				t.Fatalf("got %q, want %d messages", got, len(tt.want))
			}
			for i, want := range tt.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("got %q, want it to begin with %q", got[i], want)
				}
			}
		})
	}
}

func TestProse_SkipsCodeAndTests(t *testing.T) {
	files := parseSources(t, map[string]string{
		"router/a.go":      "package p\n\n// One.\n//\n//\tcode()\n//go:generate x\nvar s = \"one two three four\"\n\nvar short = \"one two\"\n",
		"router/a_test.go": "package p\n\n// Skipped.\nvar u = \"one two three four\"\n",
	})
	if diff := cmp.Diff([]string{" One.", ""}, textsOf(commentProse(files))); diff != "" {
		t.Errorf("comments (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"one two three four"}, textsOf(messageProse(files))); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, textsOf(proseLines("x.md", "a\n```sh\nrm\n```\nb"))); diff != "" {
		t.Errorf("Markdown (-want +got):\n%s", diff)
	}
}

func textsOf(list []prose) []string {
	var out []string
	for _, p := range list {
		out = append(out, p.text)
	}
	return out
}

func TestPlantedIdentifiers(t *testing.T) {
	replaced := map[string]string{"sight": "visibility filter"}
	runSourceCases(t, []sourceCase{
		{"part of a name", "router/a.go", "type sightseeing struct{}", nil},
		{"local variable", "router/a.go", "func f() { sight := 1; _ = sight }", nil},
		{"in a test", "router/a_test.go", "type sight struct{}", nil},
		{"type", "router/a.go", "type sight struct{}", []string{"router/a.go:2: sight is not a standard term: use visibility filter"}},
		{"exported method", "router/a.go", "type s int\nfunc (s) Sight() {}", []string{"router/a.go:3: Sight is not a standard term: use visibility filter"}},
		{"field", "router/a.go", "type s struct{ sight int }", []string{"router/a.go:2: sight is not a standard term: use visibility filter"}},
		{"variable", "router/a.go", "var sight int", []string{"router/a.go:2: sight is not a standard term: use visibility filter"}},
	}, func(files []*file) []string { return checkIdentifiers(replaced, nil, files) })
}

func TestPlantedOneWordNames(t *testing.T) {
	files := parseSources(t, map[string]string{"router/a.go": "package p\n\ntype reader struct{}\n\nfunc (r reader) readKey() {}\nfunc f1() {}\nfunc New() {}\n"})
	if got := checkOneWordNames(0.25, files); got != nil {
		t.Errorf("got %q, want none: one of four names is one word", got)
	}
	if got := checkOneWordNames(0.2, files); len(got) != 1 || !strings.Contains(got[0], "router/a.go:3 reader") {
		t.Errorf("got %q, want a message with reader", got)
	}
}

func TestPlantedSizes(t *testing.T) {
	methods := func(n int) string {
		return "type t[T any] struct{}\n" + strings.Repeat("func (x *t[T]) _() {}\n", n)
	}
	runSourceCases(t, []sourceCase{
		{"40 methods", "router/a.go", methods(40), nil},
		{"41 methods", "router/a.go", methods(41), []string{"router.t has 41, more than 40 methods: split the type by concern"}},
		{"4 interface methods", "router/a.go", "type I interface { A(); B(); C(); D() }", nil},
		{"5 interface methods", "router/a.go", "type I interface { A(); B(); C(); D(); E() }", []string{"router/a.go:2: interface I has 5 methods, more than 4: split it by caller"}},
		{"5, not exported", "router/a.go", "type i interface { A(); B(); C(); D(); E() }", nil},
	}, checkSizes)

	sources := map[string]string{}
	for i := range 31 {
		sources["router/"+strings.Repeat("a", i+1)+".go"] = "package p\n"
		sources["cmd/x/"+strings.Repeat("a", i+1)+".go"] = "package p\n"
	}
	want := []string{"router has 31, more than 30 files: split the package by concern"}
	if diff := cmp.Diff(want, checkSizes(parseSources(t, sources))); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

package archtest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sourceCase is a source file with the expected messages.
type sourceCase struct {
	name string
	path string
	src  string // after the package clause, which is line 1
	want []string
}

func runSourceCases(t *testing.T, tests []sourceCase, check func(files []*file) []string) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := check(parseSources(t, map[string]string{tt.path: "package p\n" + tt.src}))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlantedGoroutines(t *testing.T) {
	runSourceCases(t, []sourceCase{
		{"in internal/run", "internal/run/a.go", "func f() { go f() }", nil},
		{"in a test", "router/a_test.go", "func f() { go f() }", nil},
		{"run.Group", "router/a.go", `func f() { g.Go("watch", watch) }`, nil},
		{"named in a comment", "router/a.go", "// go f()\nfunc f() {}", nil},
		{"go statement", "router/a.go", "func f() { go f() }", []string{
			"router/a.go:2: go starts a goroutine outside internal/run: use a run.Group or run.Each",
		}},
		{"in a closure", "cmd/caprouter/a.go", "var f = func() {\n\tgo func() {}()\n}", []string{
			"cmd/caprouter/a.go:3: go starts a goroutine outside internal/run: use a run.Group or run.Each",
		}},
		{"sync.WaitGroup", "router/a.go", "import \"sync\"\nfunc f() {\n\tvar wg sync.WaitGroup\n\twg.Go(f)\n}", []string{
			"router/a.go:5: WaitGroup.Go starts a goroutine outside internal/run: use a run.Group or run.Each",
		}},
		{"time.AfterFunc", "router/a.go", "import \"time\"\nfunc f() { time.AfterFunc(0, f) }", []string{
			"router/a.go:3: time.AfterFunc starts a goroutine outside internal/run: use a run.Group or run.Each",
		}},
		{"context.AfterFunc", "router/a.go", "import c \"context\"\nfunc f() { c.AfterFunc(nil, f) }", []string{
			"router/a.go:3: context.AfterFunc starts a goroutine outside internal/run: use a run.Group or run.Each",
		}},
		{"method with that name", "router/a.go", "func f() { clock.AfterFunc(0, f) }", nil},
	}, func(files []*file) []string { return checkGoroutines(nil, files) })
}

func TestPlantedExceptions(t *testing.T) {
	src := map[string]string{"dispatch/httptarget/cancel.go": "package httptarget\n\nimport \"context\"\n\nfunc f() { context.AfterFunc(nil, f); go f() }\n"}
	const stillGo = "dispatch/httptarget/cancel.go:5: go starts a goroutine outside internal/run: use a run.Group or run.Each"
	tests := []struct {
		name    string
		allowed []exception
		want    []string
	}{
		{"for a file, and this call alone", []exception{{"dispatch/httptarget/cancel.go", "context.AfterFunc", "one flag is set"}}, []string{stillGo}},
		{"for a package", []exception{{"dispatch/httptarget", "context.AfterFunc", "one flag is set"}}, []string{stillGo}},
		{"without a reason", []exception{{"dispatch/httptarget", "context.AfterFunc", ""}}, []string{
			stillGo, "goroutines: the exception for dispatch/httptarget gives no reason",
		}},
		{"unnecessary", []exception{{"dispatch/httptarget", "context.AfterFunc", "one flag is set"}, {"router", "go", "none"}}, []string{
			stillGo, "goroutines: the exception for router is not needed: remove it",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := checkGoroutines(tt.allowed, parseSources(t, src))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlantedJSON(t *testing.T) {
	runSourceCases(t, []sourceCase{
		{"raw type", "router/a.go", "import \"encoding/json\"\nvar raw json.RawMessage", nil},
		{"in a test", "router/a_test.go", "import \"encoding/json\"\nvar b, _ = json.Marshal(1)", nil},
		{"in strictjson", "internal/strictjson/a.go", "import \"encoding/json\"\nvar b, _ = json.Marshal(1)", nil},
		{"another json", "router/a.go", "import \"example.com/json\"\nvar b, _ = json.Marshal(1)", nil},
		{"decoding", "router/a.go", "import \"encoding/json\"\nfunc f() { _ = json.Unmarshal(nil, nil) }", []string{
			"router/a.go:3: json.Unmarshal accepts duplicate names and trailing text: use internal/strictjson",
		}},
		{"under another name", "router/a.go", "import j \"encoding/json\"\nfunc f() { j.NewDecoder(nil) }", []string{
			"router/a.go:3: json.NewDecoder accepts duplicate names and trailing text: use internal/strictjson",
		}},
	}, func(files []*file) []string { return checkJSON(nil, files) })
}

func TestPlantedSleeps(t *testing.T) {
	runSourceCases(t, []sourceCase{
		{"in production", "router/a.go", "import \"time\"\nfunc f() { time.Sleep(1) }", nil},
		{"timer in a test", "router/a_test.go", "import \"time\"\nfunc f() { <-time.After(1) }", nil},
		{"in a test", "router/a_test.go", "import \"time\"\nfunc f() { time.Sleep(1) }", []string{
			"router/a_test.go:3: time.Sleep in a test: wait for the event, use testing/synctest or an injected clock",
		}},
		{"passed on", "router/a_test.go", "import clock \"time\"\nvar wait = clock.Sleep", []string{
			"router/a_test.go:3: time.Sleep in a test: wait for the event, use testing/synctest or an injected clock",
		}},
	}, checkSleeps)
}

func TestPlantedInit(t *testing.T) {
	runSourceCases(t, []sourceCase{
		{"a method", "router/a.go", "type t int\nfunc (t) init() {}", nil},
		{"a function", "router/a.go", "func init() {}", []string{
			"router/a.go:2: func init runs for whoever imports the package: do it in New",
		}},
		{"in a test", "router/a_test.go", "func init() {}", []string{
			"router/a_test.go:2: func init runs for whoever imports the package: do it in New",
		}},
	}, checkInit)
}

func TestPlantedState(t *testing.T) {
	changed := func(line, name string) []string {
		return []string{"router/a.go:" + line + ": package variable " + name + " is changed here: put it into a struct"}
	}
	runSourceCases(t, []sourceCase{
		{"constant table", "router/a.go", "var t = map[string]int{}\nfunc f() int { return t[\"a\"] }", nil},
		{"error", "router/a.go", "import \"errors\"\nvar errGone = errors.New(\"gone\")\nfunc f() error { return errGone }", nil},
		{"interface check", "router/a.go", "type i interface{}\ntype s struct{}\nvar _ i = (*s)(nil)", nil},
		{"local variable with that name", "router/a.go", "var t = 1\nfunc f() { t := 2; t++; t = 3 }", nil},
		{"parameter with that name", "router/a.go", "var t []int\nfunc f(t []int) { t[0] = 1 }", nil},
		{"field with that name", "router/a.go", "var t = 1\ntype s struct{ t int }\nfunc (x *s) f() { x.t = 2 }", nil},
		{"in a test", "router/a_test.go", "var t = 1\nfunc f() { t = 2 }", nil},
		{"with imports that are not loaded", "router/a.go", "import \"example.com/x\"\nvar t = x.New()\nfunc f() { y := x.Get(t); y.Z = 1 }", nil},
		{"assigned", "router/a.go", "var t = 1\nfunc f() { t = 2 }", changed("3", "t")},
		{"assigned among others", "router/a.go", "var t = 1\nfunc f() { a, t := 1, 2; _, _ = a, t }\nfunc g() { var a int; a, t = 1, 2; _ = a }", changed("4", "t")},
		{"counted", "router/a.go", "var t int\nfunc f() { t++ }", changed("3", "t")},
		{"entry", "router/a.go", "var t = map[string][]int{}\nfunc f() { t[\"a\"][0] = 1 }", changed("3", "t")},
		{"a field", "router/a.go", "var t struct{ a int }\nfunc f() { (t).a = 1 }", changed("3", "t")},
		{"through a pointer", "router/a.go", "var t *int\nfunc f() { *t = 1 }", changed("3", "t")},
		{"deleted from", "router/a.go", "var t = map[string]int{}\nfunc f() { delete(t, \"a\") }", changed("3", "t")},
		{"copied into", "router/a.go", "var t = make([]int, 1)\nfunc f() { copy(t[:1], t) }", changed("3", "t")},
		{"ranged into", "router/a.go", "var t int\nfunc f() { for t = range 3 {} }", changed("3", "t")},
		{"its address", "router/a.go", "var t int\nfunc f() *int { return &t }", changed("3", "t")},
		{"appended to", "router/a.go", "var t []int\nfunc f() { t = append(t, 1) }", changed("3", "t")},
		{"a lock", "router/a.go", "import \"sync\"\nvar mu sync.Mutex", []string{
			"router/a.go:3: package variable mu is a sync.Mutex, which is mutable: put it into a struct",
		}},
		{"atomic", "router/a.go", "import \"sync/atomic\"\nvar n atomic.Int64", []string{
			"router/a.go:3: package variable n is a atomic.Int64, which is mutable: put it into a struct",
		}},
	}, func(files []*file) []string { return checkState(nil, files) })

	t.Run("in another file of the package", func(t *testing.T) {
		files := parseSources(t, map[string]string{
			"router/a.go": "package router\n\nvar t int\n",
			"router/b.go": "package router\n\nfunc f() { t = 1 }\n",
			"golden/b.go": "package golden\n\nvar s int\n\nfunc f(t int) { t = s }\n",
		})
		want := []string{"router/b.go:3: package variable t is changed here: put it into a struct"}
		if diff := cmp.Diff(want, checkState(nil, files)); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
		if got := checkState([]exception{{"router", "t", "counts"}}, files); got != nil {
			t.Errorf("with an exception: got %q, want none", got)
		}
	})
}

func TestPlantedLength(t *testing.T) {
	lines := func(n int) string { return strings.Repeat("\n", n-1) } // after line 1
	tests := []struct {
		name string
		path string
		src  string
		want []string
	}{
		{"600", "router/a.go", "package router\n" + lines(600), nil},
		{"601", "router/a.go", "package router\n" + lines(601), []string{"router/a.go has 601 lines, more than 600: split it by concern"}},
		{"601, a test", "router/a_test.go", "package router\n" + lines(601), []string{"router/a_test.go has 601 lines, more than 600: split it by concern"}},
		{"generated", "router/a.go", "// Code generated by x. DO NOT EDIT.\n\npackage router\n" + lines(700), nil},
		{"main, 60", "cmd/caprouter/main.go", "package main\n" + lines(60), nil},
		{"main, 61", "cmd/caprouter/main.go", "package main\n" + lines(61), []string{"cmd/caprouter/main.go has 61 lines: main parses flags and calls internal/app, in at most 60"}},
		{"main of a tool", "test/bench/main.go", "package main\n" + lines(90), nil},
		{"beside main", "cmd/caprouter/serve.go", "package main\n" + lines(200), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := checkLength(parseSources(t, map[string]string{tt.path: tt.src}))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlantedComments(t *testing.T) {
	tests := []struct {
		name    string
		sources map[string]string
		want    []string
	}{
		{"one comment", map[string]string{"router/a.go": "// Package router is one.\npackage router", "router/b.go": "package router"}, nil},
		{"comment of a command", map[string]string{"cmd/caprouter/main.go": "// Command caprouter is one.\npackage main"}, nil},
		{"no comment", map[string]string{"router/a.go": "package router"}, []string{
			"package router has no package comment: describe its responsibility and its limits",
		}},
		{"in a test only", map[string]string{"router/a.go": "package router", "router/a_test.go": "// Package router is one.\npackage router"}, []string{
			"package router has no package comment: describe its responsibility and its limits",
		}},
		{"detached", map[string]string{"router/a.go": "// Package router is one.\n\npackage router"}, []string{
			"package router has no package comment: describe its responsibility and its limits",
		}},
		{"two comments", map[string]string{"router/a.go": "// Package router is one.\npackage router", "router/b.go": "// Package router is two.\npackage router"}, []string{
			"package router has package comments in router/a.go and router/b.go: keep one",
		}},
		{"other beginning", map[string]string{"router/a.go": "// The router.\npackage router"}, []string{
			`router/a.go: the package comment must begin "Package router "`,
		}},
		{"tests only", map[string]string{"router/a_test.go": "package router"}, []string{
			"package router contains only tests: add a doc.go that describes what they check",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := checkComments(parseSources(t, tt.sources))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

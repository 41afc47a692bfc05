package archtest

import (
	"fmt"
	"go/ast"
	"slices"
)

// checkGoroutines finds goroutines started outside internal/run.
func checkGoroutines(allowed []exception, files []*file) []string {
	rule := newRuleReport("goroutines", allowed)
	for _, f := range files {
		if f.test || f.pkg == "internal/run" {
			continue
		}
		report := func(at ast.Node, what string) {
			rule.report(f, what, fmt.Sprintf("%s: %s starts a goroutine outside internal/run: use a run.Group or run.Each", f.position(at), what))
		}
		for n := range ast.Preorder(f.ast) {
			switch n := n.(type) {
			case *ast.GoStmt:
				report(n, "go")
			case *ast.CallExpr:
				// sync.WaitGroup.Go and errgroup.Group.Go have a function as their only argument,
				// run.Group.Go also has a name.
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" && len(n.Args) == 1 {
					report(n, "WaitGroup.Go")
				}
			}
		}
		for _, pkg := range []string{"time", "context"} {
			for name, at := range f.selections(pkg) {
				if name == "AfterFunc" {
					report(at, pkg+".AfterFunc")
				}
			}
		}
	}
	return rule.messages()
}

// checkJSON finds uses of encoding/json outside internal/strictjson, except for the type
// RawMessage: encoding/json accepts documents that the router must reject.
func checkJSON(allowed []exception, files []*file) []string {
	rule := newRuleReport("encoding/json", allowed)
	for _, f := range files {
		if f.test || f.pkg == "internal/strictjson" {
			continue
		}
		for name, at := range f.selections("encoding/json") {
			if name != "RawMessage" {
				rule.report(f, "", fmt.Sprintf("%s: json.%s accepts duplicate names and trailing text: use internal/strictjson", f.position(at), name))
			}
		}
	}
	return rule.messages()
}

// checkSleeps finds tests that wait for time to pass.
func checkSleeps(files []*file) []string {
	var bad []string
	for _, f := range files {
		if !f.test {
			continue
		}
		for name, at := range f.selections("time") {
			if name == "Sleep" {
				bad = append(bad, f.position(at)+": time.Sleep in a test: wait for the event, use testing/synctest or an injected clock")
			}
		}
	}
	return bad
}

// checkInit finds init functions.
func checkInit(files []*file) []string {
	var bad []string
	for _, f := range files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				bad = append(bad, f.position(fn)+": func init runs for whoever imports the package: do it in New")
			}
		}
	}
	return bad
}

// rule collects the messages of one rule and finds unnecessary exceptions.
type rule struct {
	name    string
	allowed []exception
	used    []bool
	bad     []string
}

func newRuleReport(name string, allowed []exception) *rule {
	return &rule{name: name, allowed: allowed, used: make([]bool, len(allowed))}
}

// report adds the text, unless an exception permits it in f.
func (r *rule) report(f *file, what, text string) {
	i := slices.IndexFunc(r.allowed, func(e exception) bool {
		return (e.place == f.path || e.place == f.pkg) && e.what == what
	})
	if i >= 0 {
		r.used[i] = true
		return
	}
	r.bad = append(r.bad, text)
}

// messages adds the exceptions that are unnecessary or give no reason.
func (r *rule) messages() []string {
	for i, e := range r.allowed {
		if !r.used[i] {
			r.bad = append(r.bad, fmt.Sprintf("%s: the exception for %s is not needed: remove it", r.name, e.place))
		}
		if e.why == "" {
			r.bad = append(r.bad, fmt.Sprintf("%s: the exception for %s gives no reason", r.name, e.place))
		}
	}
	return r.bad
}

package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// phrase is an expression that is counted in prose.
type phrase struct {
	name    string
	pattern *regexp.Regexp
}

// idioms are expressions that hide the actor or the condition of a sentence.
func idioms() []phrase {
	return []phrase{
		{"an indefinite person: name the actor", regexp.MustCompile(`(?i)\b(?:some|no|any|every)body\b`)},
		{"a sentence without a subject noun", regexp.MustCompile(`(?:^|[.;:(]\s+)(?:Who|Whoever|Whatever|What|Whose)\s+[a-z]+`)},
		{"\"what is\" in place of a noun", regexp.MustCompile(`\bwhat (?:is|was|are|were|may|must|can|has|have|had|comes|came|goes|becomes|became)\b`)},
		{"a program that speaks: it returns, reports, contains", regexp.MustCompile(`(?i)\b(?:says|said|tells|told|asks whether|is asked)\b`)},
		{"\"one that\" in place of a noun", regexp.MustCompile(`(?:^|[.;:(]\s+)(?:One|Those|That) (?:that|which|who|of|whose)\b`)},
		{"a figurative verb", regexp.MustCompile(`\b(?:goes on|go on|stands in|stands for|lies|comes along)\b`)},
	}
}

// condition is the word that plain explanations of code use most.
var condition = regexp.MustCompile(`(?i)\bif\b`)

// word separates the counted words.
var word = regexp.MustCompile(`[A-Za-z']+`)

// prose is one line of text and its place.
type prose struct {
	place string
	text  string
}

// proseLimits bound a kind of text, in occurrences per 1,000 words.
type proseLimits struct {
	kind          string
	maxIdiom      float64
	minConditions float64
}

// checkProse counts idioms and conditions in texts of one kind.
func checkProse(limits proseLimits, texts []prose) []string {
	words, conditions := 0, 0
	hits := map[string][]prose{}
	for _, p := range texts {
		words += len(word.FindAllString(p.text, -1))
		conditions += len(condition.FindAllString(p.text, -1))
		for _, idiom := range idioms() {
			for range idiom.pattern.FindAllString(p.text, -1) {
				hits[idiom.name] = append(hits[idiom.name], p)
			}
		}
	}
	if words == 0 {
		return []string{limits.kind + ": found no text"}
	}
	perThousand := func(n int) float64 { return 1000 * float64(n) / float64(words) }
	var bad []string
	for _, idiom := range idioms() {
		found := hits[idiom.name]
		if rate := perThousand(len(found)); rate > limits.maxIdiom {
			bad = append(bad, fmt.Sprintf("%s: %.2f per 1,000 words, at most %.2f: %s. For example:%s",
				limits.kind, rate, limits.maxIdiom, idiom.name, examples(found)))
		}
	}
	if rate := perThousand(conditions); rate < limits.minConditions {
		bad = append(bad, fmt.Sprintf("%s: \"if\" %.2f times per 1,000 words, at least %.2f: state conditions plainly", limits.kind, rate, limits.minConditions))
	}
	return bad
}

// examples lists the first texts for a message.
func examples(found []prose) string {
	var b strings.Builder
	for _, p := range found[:min(len(found), 5)] {
		fmt.Fprintf(&b, "\n\t%s: %s", p.place, strings.TrimSpace(p.text))
	}
	return b.String()
}

// commentProse returns the comment lines of the files that are not tests.
func commentProse(files []*file) []prose {
	var out []prose
	for _, f := range files {
		if f.test {
			continue
		}
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				text := strings.TrimPrefix(c.Text, "//")
				if strings.HasPrefix(text, "\t") || strings.HasPrefix(text, "go:") || strings.HasPrefix(text, "nolint") {
					continue // code in a package comment, or a directive
				}
				out = append(out, prose{f.position(c), text})
			}
		}
	}
	return out
}

// messageProse returns the string literals of at least four words: errors, help and
// log messages.
func messageProse(files []*file) []prose {
	const minWords = 4
	var out []prose
	for _, f := range files {
		if f.test {
			continue
		}
		for n := range ast.Preorder(f.ast) {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				continue
			}
			text, err := strconv.Unquote(lit.Value)
			if err == nil && len(word.FindAllString(text, minWords)) == minWords {
				out = append(out, prose{f.position(lit), text})
			}
		}
	}
	return out
}

// documentProse returns the lines of the module's documents outside code fences.
func documentProse(t *testing.T) []prose {
	t.Helper()
	root := moduleRoot(t)
	var out []prose
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && isSkipped(name, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".md":
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		out = append(out, proseLines(filepath.ToSlash(rel), string(data))...)
		return nil
	})
	if err != nil {
		t.Fatalf("read the documents: %v", err)
	}
	return out
}

// proseLines returns the lines of a Markdown text outside code fences.
func proseLines(name, text string) []prose {
	var out []prose
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
		case !fenced:
			out = append(out, prose{fmt.Sprintf("%s:%d", name, i+1), line})
		}
	}
	return out
}

// checkIdentifiers finds package-level names, methods and fields that are a whole word
// of a former vocabulary of this project.
func checkIdentifiers(replaced map[string]string, allowed []exception, files []*file) []string {
	rule := newRuleReport("names", allowed)
	for _, f := range files {
		if f.test {
			continue
		}
		for id := range declaredNames(f) {
			if term, ok := replaced[strings.ToLower(id.Name)]; ok {
				rule.report(f, id.Name, fmt.Sprintf("%s: %s is not a standard term: use %s", f.position(id), id.Name, term))
			}
		}
	}
	return rule.messages()
}

// checkOneWordNames limits the share of functions, methods and types whose name is a
// single lower-case word: such a name is hard to understand or to find in other files.
func checkOneWordNames(maxShare float64, files []*file) []string {
	all, short := 0, []string{}
	for _, f := range files {
		if f.test {
			continue
		}
		for _, id := range declaredFuncsAndTypes(f) {
			all++
			if id.Name != "main" && strings.ToLower(id.Name) == id.Name && !strings.ContainsAny(id.Name, "0123456789_") {
				short = append(short, f.position(id)+" "+id.Name)
			}
		}
	}
	if share := float64(len(short)) / float64(max(all, 1)); share > maxShare {
		return []string{fmt.Sprintf("%.0f %% of %d functions, methods and types are named with one lower-case word, at most %.0f %%: use verb and object, or a role. For example:\n\t%s",
			100*share, all, 100*maxShare, strings.Join(short[:min(len(short), 20)], "\n\t"))}
	}
	return nil
}

// declaredFuncsAndTypes returns the names of the functions, methods and types
// that a file declares.
func declaredFuncsAndTypes(f *file) []*ast.Ident {
	var out []*ast.Ident
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			out = append(out, d.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					out = append(out, t.Name)
				}
			}
		}
	}
	return out
}

// declaredNames yields package-level names, methods, struct fields and interface
// methods of a file.
func declaredNames(f *file) func(yield func(*ast.Ident) bool) {
	return func(yield func(*ast.Ident) bool) {
		names := declaredFuncsAndTypes(f)
		for _, d := range f.ast.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					names = append(names, spec.Names...)
				case *ast.TypeSpec:
					for n := range ast.Preorder(spec) {
						if field, ok := n.(*ast.Field); ok {
							names = append(names, field.Names...)
						}
					}
				}
			}
		}
		for _, id := range names {
			if !yield(id) {
				return
			}
		}
	}
}

// checkSizes limits the methods of a type, the methods of an exported interface and the
// files of a package.
func checkSizes(files []*file) []string {
	const (
		maxMethods          = 40
		maxInterfaceMethods = 4
		maxFiles            = 30
	)
	methods, fileCount := map[string]int{}, map[string]int{}
	var bad []string
	for _, f := range files {
		if f.test {
			continue
		}
		if !strings.HasPrefix(f.pkg, "cmd/") {
			fileCount[f.pkg]++
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil && len(d.Recv.List) == 1 {
					if id := baseIdent(d.Recv.List[0].Type); id != nil {
						methods[f.pkg+"."+id.Name]++
					}
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					t, ok := spec.(*ast.TypeSpec)
					if !ok || !t.Name.IsExported() {
						continue
					}
					if it, ok := t.Type.(*ast.InterfaceType); ok && it.Methods.NumFields() > maxInterfaceMethods {
						bad = append(bad, fmt.Sprintf("%s: interface %s has %d methods, more than %d: split it by caller", f.position(t), t.Name.Name, it.Methods.NumFields(), maxInterfaceMethods))
					}
				}
			}
		}
	}
	bad = append(bad, overLimit(methods, maxMethods, "methods: split the type by concern")...)
	return append(bad, overLimit(fileCount, maxFiles, "files: split the package by concern")...)
}

// overLimit lists the entries of counts above limit, largest first.
func overLimit(counts map[string]int, limit int, advice string) []string {
	var bad []string
	for name, n := range counts {
		if n > limit {
			bad = append(bad, fmt.Sprintf("%s has %d, more than %d %s", name, n, limit, advice))
		}
	}
	slices.Sort(bad)
	return bad
}

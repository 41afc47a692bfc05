package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// checkState finds package variables that change: those that the package assigns to,
// modifies in part or takes the address of, and those with a mutable type from sync and
// sync/atomic.
func checkState(allowed []exception, files []*file) []string {
	rule := newRuleReport("package variables", allowed)
	for _, pkg := range packages(files) {
		in := slices.DeleteFunc(slices.Clone(files), func(f *file) bool { return f.test || f.pkg != pkg })
		if len(in) > 0 {
			checkPackageState(rule, in)
		}
	}
	return rule.messages()
}

func checkPackageState(rule *rule, files []*file) {
	for _, f := range files {
		for spec := range packageVars(f) {
			if sel, ok := spec.Type.(*ast.SelectorExpr); ok {
				x, _ := sel.X.(*ast.Ident)
				if x != nil && (x.Name == "sync" || x.Name == "atomic") {
					what := spec.Names[0].Name
					rule.report(f, what, fmt.Sprintf("%s: package variable %s is a %s.%s, which is mutable: put it into a struct", f.position(spec), what, x.Name, sel.Sel.Name))
				}
			}
		}
	}
	isPackageVar := packageVarResolver(files)
	for _, f := range files {
		for n := range ast.Preorder(f.ast) {
			for _, target := range writtenExprs(n) {
				if id := baseIdent(target); id != nil && isPackageVar(id) {
					rule.report(f, id.Name, fmt.Sprintf("%s: package variable %s is changed here: put it into a struct", f.position(n), id.Name))
				}
			}
		}
	}
}

// packageVars yields the variables declared outside functions.
func packageVars(f *file) func(yield func(*ast.ValueSpec) bool) {
	return func(yield func(*ast.ValueSpec) bool) {
		for _, d := range f.ast.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.VAR {
				continue
			}
			for _, spec := range decl.Specs {
				if !yield(spec.(*ast.ValueSpec)) {
					return
				}
			}
		}
	}
}

// packageVarResolver distinguishes package variables from local variables with the same
// name. It uses the scopes of the type checker, without imports: imported names remain
// unknown, which causes errors that are ignored, but affects no identifier of the module.
func packageVarResolver(files []*file) func(*ast.Ident) bool {
	trees := make([]*ast.File, len(files))
	for i, f := range files {
		trees[i] = f.ast
	}
	conf := types.Config{Importer: noImports{}, Error: func(error) {}}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	pkg, _ := conf.Check(files[0].pkg, files[0].fset, trees, info)
	return func(id *ast.Ident) bool {
		v, ok := info.Uses[id].(*types.Var)
		return ok && pkg != nil && v.Parent() == pkg.Scope()
	}
}

type noImports struct{}

var _ types.Importer = noImports{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not loaded") }

// writtenExprs returns the expressions a node writes to, or could by their address.
func writtenExprs(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return []ast.Expr{n.Key, n.Value}
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			return []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		if fn, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && slices.Contains([]string{"delete", "clear", "copy"}, fn.Name) {
			return n.Args[:1]
		}
	}
	return nil
}

// baseIdent returns the variable an expression is a part of: v of v.f[i], *v, (v).
func baseIdent(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

package archtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// packagePlace is the position of a package in the table.
type packagePlace struct {
	row
	level int
	name  string // of the level
}

// checkImports checks the files with the import table, and the table with the files.
func checkImports(table []level, extra []importException, files []*file) []string {
	places, bad := placePackages(table)
	used := map[importException]bool{}
	for _, pkg := range packages(files) {
		if _, ok := places[pkg]; !ok {
			bad = append(bad, fmt.Sprintf("package %s has no row in the import table: give it a level and a reason", pkg))
		}
	}
	for _, f := range files {
		from, ok := places[f.pkg]
		if !ok {
			continue
		}
		for path, spec := range f.imports {
			target, ours := strings.CutPrefix(path, module+"/")
			if !ours || target == f.pkg { // an external test imports its own package
				continue
			}
			to, ok := places[target]
			if !ok {
				continue // reported above, or it does not exist: the compiler reports that
			}
			problem := checkImport(f, from, to)
			if problem == "" {
				continue
			}
			if i := slices.IndexFunc(extra, func(a importException) bool { return a.from == f.pkg && a.to == target }); i >= 0 {
				used[extra[i]] = true
				continue
			}
			bad = append(bad, fmt.Sprintf("%s: %s imports %s: %s", f.position(spec), f.pkg, target, problem))
		}
	}
	return append(bad, checkTable(places, extra, used, packages(files))...)
}

// checkImport returns why f, of package from, may not import to, or "" if it may.
func checkImport(f *file, from, to packagePlace) string {
	testing := f.test || from.testsOnly
	switch {
	case to.testsOnly && !f.test:
		return "it is test code: only _test.go files may import it"
	case to.testsOnly:
		return ""
	case from.only != nil && !f.test && !slices.Contains(from.only, to.pkg):
		return fmt.Sprintf("of this module, it may import %s, because: %s", cmp.Or(strings.Join(from.only, ", "), "no package"), from.why)
	case to.users != nil && !testing && !slices.Contains(to.users, from.pkg):
		return fmt.Sprintf("only %s may import it, because: %s", strings.Join(to.users, ", "), to.why)
	case to.level == from.level:
		return fmt.Sprintf("both are on level %d (%s), and packages of the same level must not import each other", to.level, to.name)
	case to.level > from.level:
		return fmt.Sprintf("an import of a higher level, from level %d (%s) to level %d (%s)", from.level, from.name, to.level, to.name)
	}
	return ""
}

func placePackages(table []level) (map[string]packagePlace, []string) {
	places := map[string]packagePlace{}
	var bad []string
	for i, l := range table {
		for _, r := range l.rows {
			if _, ok := places[r.pkg]; ok {
				bad = append(bad, fmt.Sprintf("package %s has two rows in the import table", r.pkg))
			}
			places[r.pkg] = packagePlace{r, i, l.name}
		}
	}
	return places, bad
}

// checkTable finds rows that are not needed and rows without a reason.
func checkTable(places map[string]packagePlace, extra []importException, used map[importException]bool, pkgs []string) []string {
	var bad []string
	for _, pkg := range slices.Sorted(maps.Keys(places)) {
		if !slices.Contains(pkgs, pkg) {
			bad = append(bad, fmt.Sprintf("the import table has a row for %s, which does not exist: remove the row", pkg))
		}
		if places[pkg].why == "" {
			bad = append(bad, fmt.Sprintf("the row of %s in the import table gives no reason", pkg))
		}
	}
	for _, a := range extra {
		if !used[a] {
			bad = append(bad, fmt.Sprintf("the import exception %s → %s is not needed: remove it", a.from, a.to))
		}
		if a.why == "" {
			bad = append(bad, fmt.Sprintf("the import exception %s → %s gives no reason", a.from, a.to))
		}
	}
	return bad
}

// checkLibraries checks that each library is imported only by the packages of its row.
// testPackages are packages with only test code.
func checkLibraries(table []libraryRule, testPackages []string, files []*file) []string {
	var bad []string
	used := map[string]bool{}
	for _, f := range files {
		testing := f.test || slices.Contains(testPackages, f.pkg)
		for path, spec := range f.imports {
			if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") || isBelow(path, module) {
				continue // the standard library or this module
			}
			i := slices.IndexFunc(table, func(h libraryRule) bool { return isBelow(path, h.library) })
			if i < 0 {
				bad = append(bad, fmt.Sprintf("%s: %s has no row in the library table: add one with a reason", f.position(spec), path))
				continue
			}
			h := table[i]
			used[h.library] = true
			switch {
			case h.tests && !testing:
				bad = append(bad, fmt.Sprintf("%s: %s is a test library (%s)", f.position(spec), path, h.why))
			case len(h.in) > 0 && !slices.Contains(h.in, f.pkg):
				bad = append(bad, fmt.Sprintf("%s: %s is imported outside %s (%s)", f.position(spec), path, strings.Join(h.in, ", "), h.why))
			}
		}
	}
	for _, h := range table {
		if !used[h.library] {
			bad = append(bad, fmt.Sprintf("library %s has a row in the library table, but no package imports it: remove the row", h.library))
		}
		if h.why == "" {
			bad = append(bad, fmt.Sprintf("the row of library %s gives no reason", h.library))
		}
	}
	return bad
}

// isBelow reports whether an import path is root or is below it.
func isBelow(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

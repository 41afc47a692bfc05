package archtest

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// smallTable is an import table with one row of each kind.
func smallTable() []level {
	return []level{
		{"shared types", []row{{pkg: "contract", why: "shared by all"}}},
		{"libraries", []row{
			{pkg: "internal/run", why: "goroutines"},
			{pkg: "internal/auth", why: "tokens"},
			{pkg: "agentkit", why: "for programs outside this module", only: []string{"contract"}, users: []string{"internal/demo"}},
		}},
		{"pipeline", []row{{pkg: "router", why: "the stages of a request"}}},
		{"shared by tests", []row{{pkg: "internal/testkit", why: "helpers", testsOnly: true}}},
		{"demonstration", []row{{pkg: "internal/demo", why: "sample agents"}}},
		{"agents", []row{{pkg: "internal/demo/pycheck", why: "independent of the router", only: []string{}}}},
	}
}

// withSmallTable returns one file for every package of smallTable, and the additional ones.
func withSmallTable(more map[string]string) map[string]string {
	sources := map[string]string{
		"contract/a.go":         "package contract",
		"internal/run/a.go":     "package run",
		"internal/auth/a.go":    "package auth",
		"agentkit/a.go":         "package agentkit",
		"router/a.go":           "package router",
		"internal/testkit/a.go": "package testkit",
		"internal/demo/a.go":    "package demo",

		"internal/demo/pycheck/a.go": "package pycheck",
	}
	maps.Copy(sources, more)
	return sources
}

func importSource(pkg, target string) string {
	return "package " + pkg + "\n\nimport _ \"" + module + "/" + target + "\"\n"
}

func TestPlantedImports(t *testing.T) {
	tests := []struct {
		name    string
		sources map[string]string
		want    []string
	}{
		{"imports that the table permits", map[string]string{
			"router/b.go":           importSource("router", "internal/run"),
			"agentkit/b.go":         importSource("agentkit", "contract"),
			"internal/demo/b.go":    importSource("demo", "agentkit"),
			"router/b_test.go":      importSource("router_test", "router"),
			"router/c_test.go":      importSource("router", "agentkit"),
			"internal/testkit/b.go": importSource("testkit", "agentkit"),
		}, nil},
		{"import of a higher level", map[string]string{"contract/b.go": importSource("contract", "router")}, []string{
			"contract/b.go:3: contract imports router: an import of a higher level, from level 0 (shared types) to level 2 (pipeline)",
		}},
		{"import of a higher level, in a test", map[string]string{"contract/b_test.go": importSource("contract_test", "internal/run")}, []string{
			"contract/b_test.go:3: contract imports internal/run: an import of a higher level, from level 0 (shared types) to level 1 (libraries)",
		}},
		{"same level", map[string]string{"internal/auth/b.go": importSource("auth", "internal/run")}, []string{
			"internal/auth/b.go:3: internal/auth imports internal/run: both are on level 1 (libraries), and packages of the same level must not import each other",
		}},
		{"import that is not listed", map[string]string{"agentkit/b.go": importSource("agentkit", "internal/run")}, []string{
			"agentkit/b.go:3: agentkit imports internal/run: of this module, it may import contract, because: for programs outside this module",
		}},
		{"import although none is listed", map[string]string{"internal/demo/pycheck/b.go": importSource("pycheck", "contract")}, []string{
			"internal/demo/pycheck/b.go:3: internal/demo/pycheck imports contract: of this module, it may import no package, because: independent of the router",
		}},
		{"import by a package that is not listed", map[string]string{"router/b.go": importSource("router", "agentkit")}, []string{
			"router/b.go:3: router imports agentkit: only internal/demo may import it, because: for programs outside this module",
		}},
		{"test package outside a test", map[string]string{"internal/demo/b.go": importSource("demo", "internal/testkit")}, []string{
			"internal/demo/b.go:3: internal/demo imports internal/testkit: it is test code: only _test.go files may import it",
		}},
		{"test package in a test of a lower level", map[string]string{"contract/b_test.go": importSource("contract_test", "internal/testkit")}, nil},
		{"package without a row", map[string]string{"util/b.go": importSource("util", "router")}, []string{
			"package util has no row in the import table: give it a level and a reason",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := checkImports(smallTable(), nil, parseSources(t, withSmallTable(tt.sources)))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlantedTable(t *testing.T) {
	up := map[string]string{"contract/b.go": importSource("contract", "router")}
	tests := []struct {
		name    string
		table   []level
		extra   []importException
		sources map[string]string
		want    []string
	}{
		{"exception", smallTable(), []importException{{"contract", "router", "for now"}}, up, nil},
		{"unnecessary exception", smallTable(), []importException{{"contract", "router", "for now"}}, nil, []string{
			"the import exception contract → router is not needed: remove it",
		}},
		{
			"exception for a permitted import", smallTable(),
			[]importException{{"router", "contract", "no need"}},
			map[string]string{"router/b.go": importSource("router", "contract")},
			[]string{
				"the import exception router → contract is not needed: remove it",
			},
		},
		{"exception without a reason", smallTable(), []importException{{"contract", "router", ""}}, up, []string{
			"the import exception contract → router gives no reason",
		}},
		{"row without a package", append(smallTable(), level{"more", []row{{pkg: "gone", why: "was needed"}}}), nil, nil, []string{
			"the import table has a row for gone, which does not exist: remove the row",
		}},
		{"row without a reason", append(smallTable(), level{"more", []row{{pkg: "docs"}}}), nil, map[string]string{"docs/a.go": "package docs"}, []string{
			"the row of docs in the import table gives no reason",
		}},
		{"two rows", append(smallTable(), level{"more", []row{{pkg: "router", why: "again"}}}), nil, nil, []string{
			"package router has two rows in the import table",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := checkImports(tt.table, tt.extra, parseSources(t, withSmallTable(tt.sources)))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlantedLibraries(t *testing.T) {
	table := []libraryRule{
		{library: "github.com/labstack/echo/v4", in: []string{"internal/rest"}, why: "the core is independent of HTTP"},
		{library: "github.com/google/go-cmp", tests: true, why: "differences"},
		{library: "github.com/getkin/kin-openapi", tests: true, in: []string{"internal/rest"}, why: "the document"},
	}
	good := map[string]string{
		"internal/rest/a.go":      "package rest\n\nimport (\n\t\"net/http\"\n\t\"github.com/labstack/echo/v4/middleware\"\n)\n",
		"internal/rest/a_test.go": "package rest\n\nimport (\n\t_ \"github.com/google/go-cmp/cmp\"\n\t_ \"github.com/getkin/kin-openapi/openapi3\"\n)\n",
		"internal/testkit/a.go":   "package testkit\n\nimport _ \"github.com/google/go-cmp/cmp\"\n",
	}
	tests := []struct {
		name string
		path string
		lib  string
		want []string
	}{
		{"permitted package", "internal/rest/b.go", "github.com/labstack/echo/v4", nil},
		{"test of a permitted package", "internal/rest/b_test.go", "github.com/labstack/echo/v4", nil},
		{"package of this module", "router/b.go", module + "/contract", nil},
		{"standard library", "router/b.go", "net/http", nil},
		{"other package", "router/b.go", "github.com/labstack/echo/v4", []string{
			"router/b.go:3: github.com/labstack/echo/v4 is imported outside internal/rest (the core is independent of HTTP)",
		}},
		{"test of another package", "router/b_test.go", "github.com/labstack/echo/v4", []string{
			"router/b_test.go:3: github.com/labstack/echo/v4 is imported outside internal/rest (the core is independent of HTTP)",
		}},
		{"library without a row", "router/b.go", "github.com/pkg/errors", []string{
			"router/b.go:3: github.com/pkg/errors has no row in the library table: add one with a reason",
		}},
		{"another version is another library", "internal/rest/b.go", "github.com/labstack/echo/v5", []string{
			"internal/rest/b.go:3: github.com/labstack/echo/v5 has no row in the library table: add one with a reason",
		}},
		{"test library outside a test", "router/b.go", "github.com/google/go-cmp/cmp", []string{
			"router/b.go:3: github.com/google/go-cmp/cmp is a test library (differences)",
		}},
		{"test library of another package", "router/b_test.go", "github.com/getkin/kin-openapi/openapi3", []string{
			"router/b_test.go:3: github.com/getkin/kin-openapi/openapi3 is imported outside internal/rest (the document)",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sources := map[string]string{tt.path: "package p\n\nimport _ \"" + tt.lib + "\"\n"}
			maps.Copy(sources, good)
			got := checkLibraries(table, []string{"internal/testkit"}, parseSources(t, sources))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("row without an import and a reason", func(t *testing.T) {
		got := checkLibraries(append(table, libraryRule{library: "example.com/gone"}), []string{"internal/testkit"}, parseSources(t, good))
		want := []string{
			"library example.com/gone has a row in the library table, but no package imports it: remove the row",
			"the row of library example.com/gone gives no reason",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
	})
}

package examples_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/docs"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/lint"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/telemetry"
)

// configuration.md must contain every key with its default and its variable.
func TestDocs_ContainConfiguration(t *testing.T) {
	text := readDoc(t, "configuration.md")
	defaults := reflect.ValueOf(config.Default())
	for _, key := range keys(defaults.Type(), "") {
		v := defaults
		for name := range strings.SplitSeq(key, ".") {
			v = fieldByKey(v, name)
		}
		shown := fmt.Sprintf("`%v`", v)
		if v.IsZero() && v.Kind() == reflect.String {
			shown = "empty"
		}
		variable := config.EnvPrefix + "_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
		if want := fmt.Sprintf("| %#q | %s | %#q |", key, shown, variable); !strings.Contains(text, want) {
			t.Errorf("configuration.md: got no row %s", want)
		}
	}
}

func fieldByKey(v reflect.Value, key string) reflect.Value {
	for i, field := range slices.Collect(v.Type().Fields()) {
		if field.Tag.Get("yaml") == key {
			return v.Field(i)
		}
	}
	panic("no key " + key)
}

func TestDocs_ContainRegistryKeys(t *testing.T) {
	text := readDoc(t, "registry.md")
	all := []string{"version", "clients", "routing", "fallback", "grants"} // of the unexported document
	all = append(all, keys(reflect.TypeFor[contract.RegistryEntry](), "")...)
	all = append(all, keys(reflect.TypeFor[capabilities.Routing](), "routing.")...)
	all = append(all, keys(reflect.TypeFor[capabilities.Fallback](), "fallback.")...)
	for _, key := range keys(reflect.TypeFor[contract.Grant](), "grants.") {
		if !strings.HasPrefix(key, "grants.requires.") { // like requires of an agent
			all = append(all, key)
		}
	}
	for _, key := range all {
		if !strings.Contains(text, "| `"+key+"` |") {
			t.Errorf("registry.md: got no row for %s", key)
		}
	}
}

func TestDocs_ContainRegistryDefaults(t *testing.T) {
	text := readDoc(t, "registry.md")
	routing, fallback := capabilities.DefaultRouting(), capabilities.DefaultFallback()
	for key, value := range map[string]any{
		"routing.confidence_threshold":   routing.ConfidenceThreshold,
		"routing.ambiguity_threshold":    routing.AmbiguityThreshold,
		"routing.topk":                   routing.TopK,
		"routing.conflict_policy":        routing.ConflictPolicy,
		"routing.auto_split_if_conflict": routing.AutoSplitIfConflict,
		"routing.implied_domains":        routing.ImpliedDomains,
		"fallback.policy":                fallback.Policy,
		"fallback.max_tokens":            fallback.MaxTokens,
		"fallback.language":              fallback.Language,
	} {
		row := regexp.MustCompile(fmt.Sprintf("(?m)^\\| %#q \\|[^|]*\\| %#q ", key, fmt.Sprint(value)))
		if !row.MatchString(text) {
			t.Errorf("registry.md: got no row for %s with the default %v", key, value)
		}
	}
}

func TestDocs_ContainLintRules(t *testing.T) {
	text := readDoc(t, "registry.md")
	for _, rule := range []string{
		capabilities.RuleUnreachable, capabilities.RuleMissingEndpoint,
		capabilities.RuleAlwaysTie, capabilities.RuleViolationOutranks, capabilities.RuleSimilarNames, capabilities.RuleExamplesOverlap,
		capabilities.RuleMissingExamples, capabilities.RuleUnusedDomain, capabilities.RuleRepeatedExample, capabilities.RuleRepeatedKeyword,
		lint.RuleExampleRefused, lint.RuleExampleAmbiguous, lint.RuleExampleElsewhere, lint.RuleConfusedIntents, lint.RuleUncheckedExamples,
		capabilities.RuleSharedAlias,
	} {
		if !strings.Contains(text, "| `"+rule+"` |") {
			t.Errorf("registry.md: got no row for the rule %s", rule)
		}
	}
}

func TestDocs_RegistriesLoad(t *testing.T) {
	block := regexp.MustCompile("(?s)\n```yaml[^\n]*\n(.*?)\n```\n")
	found := 0
	for _, name := range docNames(t) {
		for i, m := range block.FindAllStringSubmatch(readDoc(t, name), -1) {
			if !strings.HasPrefix(m[1], "clients:") && !strings.HasPrefix(m[1], "version:") {
				continue
			}
			found++
			s, err := capabilities.Parse(fmt.Sprintf("%s, yaml block %d", name, i+1), []byte(m[1]))
			if err != nil {
				t.Error(err)
				continue
			}
			report, err := lint.Check(t.Context(), s, lint.Config{})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range report.Findings {
				if len(f.Examples) > 0 {
					t.Errorf("%s, yaml block %d: %s: %s", name, i+1, f.Rule, f.Message)
				}
			}
		}
	}
	if found == 0 {
		t.Error("got no registry in any document")
	}
}

func TestDocs_FullRegistryHasEveryKey(t *testing.T) {
	_, full, _ := strings.Cut(readDoc(t, "registry.md"), "## A full file")
	full, _, _ = strings.Cut(full, "\n## ")
	for _, shape := range []reflect.Type{
		reflect.TypeFor[contract.RegistryEntry](), reflect.TypeFor[capabilities.Routing](),
		reflect.TypeFor[capabilities.Fallback](), reflect.TypeFor[contract.Grant](),
	} {
		for _, key := range keys(shape, "") {
			name := key[strings.LastIndexByte(key, '.')+1:]
			if !regexp.MustCompile(`\b` + name + `:`).MatchString(full) {
				t.Errorf("full file: got no key %s", key)
			}
		}
	}
}

func TestDocs_ContainMetrics(t *testing.T) {
	text, exported := readDoc(t, "monitoring.md"), exportedMetrics(t)
	for name, kind := range exported {
		switch {
		case strings.HasPrefix(name, "caprouter_"):
			if !strings.Contains(text, "| `"+name+"` | "+kind+" |") {
				t.Errorf("monitoring.md: got no row for the %s %s", kind, name)
			}
		case !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_"):
			t.Errorf("monitoring.md: got no family of %s", name)
		}
	}
	for _, name := range regexp.MustCompile("`caprouter_[a-z_]+`").FindAllString(text, -1) {
		if exported[strings.Trim(name, "`")] == "" {
			t.Errorf("monitoring.md: got %s, which is not exported", name)
		}
	}
}

// exportedMetrics returns the type of every metric by name.
func exportedMetrics(t *testing.T) map[string]string {
	t.Helper()
	kinds := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`).FindAllStringSubmatch(scrapeMetrics(t), -1) {
		kinds[m[1]] = m[2]
	}
	return kinds
}

// scrapeMetrics returns the answer of /metrics. Histograms are exported only if they have a
// value.
func scrapeMetrics(t *testing.T) string {
	t.Helper()
	tel, err := telemetry.New(telemetry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	tel.Metrics().RecordRequest(string(contract.StatusCompleted), time.Millisecond)
	tel.Metrics().RecordClassification(string(contract.SourceLexical), time.Millisecond)
	tel.Metrics().RecordTask(string(contract.TaskSuccess), time.Millisecond)
	tel.Metrics().RecordCascade(telemetry.CascadeSpared, 1)
	tel.Metrics().RecordModelCall(contract.PurposeAnswer, contract.OutcomeOK, contract.Tokens{}, time.Millisecond)
	tel.Metrics().RecordAuditWrite(1, time.Millisecond, nil)
	tel.Metrics().ObserveTenants(func() []telemetry.TenantBytes { return []telemetry.TenantBytes{{Tenant: "acme", Bytes: 1}} })
	tel.Metrics().RecordToolCall("weather", "query", "OK", time.Millisecond)
	tel.Metrics().ObserveMCPServers(func() map[string]int { return map[string]int{"connected": 1} })
	tel.Metrics().RecordOrchestration(contract.OrchestrationDone, time.Millisecond)
	tel.Metrics().ObserveOpenRuns(func() map[contract.OrchestrationStatus]int { return nil })
	scrape := httptest.NewRecorder()
	tel.Handler().ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return scrape.Body.String()
}

// http.md must contain every path and error code.
func TestDocs_ContainInterface(t *testing.T) {
	var api struct {
		Paths      map[string]any `json:"paths"`
		Components struct {
			Schemas struct {
				Code struct {
					Enum []string `json:"enum"`
				} `json:"Code"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := strictjson.UnmarshalAllowUnknown([]byte(readFile(t, "../internal/rest/openapi.json")), &api); err != nil {
		t.Fatal(err)
	}
	if len(api.Paths) == 0 || len(api.Components.Schemas.Code.Enum) == 0 {
		t.Fatal("openapi.json: got no paths or no codes")
	}
	text := readDoc(t, "http.md")
	for _, path := range slices.Sorted(maps.Keys(api.Paths)) {
		if !strings.Contains(text, " "+path+"` |") {
			t.Errorf("http.md: got no row for %s", path)
		}
	}
	for _, code := range api.Components.Schemas.Code.Enum {
		if !strings.Contains(text, "`"+code+"`") {
			t.Errorf("http.md: got no code %s", code)
		}
	}
}

func TestDocs_ContainScopes(t *testing.T) {
	text := readDoc(t, "security.md")
	for _, scope := range contract.Scopes() {
		if !strings.Contains(text, "| `"+scope+"` |") {
			t.Errorf("security.md: got no row for the scope %s", scope)
		}
	}
}

func TestDocs_HaveNoPlaceholders(t *testing.T) {
	for _, pattern := range []string{"../*.md", "../docs/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no files match %s (%v)", pattern, err)
		}
		for _, file := range files {
			for i, line := range strings.Split(readFile(t, file), "\n") {
				if strings.Contains(line, "@@") {
					t.Errorf("%s:%d: %s", file, i+1, line)
				}
			}
		}
	}
}

// Relative links must lead to a file and, in Markdown, to one of its headings.
func TestDocs_LinksResolve(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, pattern := range []string{"../*.md", "../docs/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no files match %s (%v)", pattern, err)
		}
		for _, file := range files {
			for _, m := range link.FindAllStringSubmatch(withoutCode(readFile(t, file)), -1) {
				if !strings.Contains(m[1], "://") && !strings.HasPrefix(m[1], "mailto:") {
					checkLink(t, file, m[1])
				}
			}
		}
	}
}

func checkLink(t *testing.T, from, link string) {
	t.Helper()
	path, fragment, _ := strings.Cut(link, "#")
	target := from
	if path != "" {
		target = filepath.Join(filepath.Dir(from), path)
	}
	info, err := os.Stat(target)
	switch {
	case err != nil:
		t.Errorf("%s links to %s: %v", from, link, err)
	case fragment != "" && !info.IsDir() && !slices.Contains(anchors(readFile(t, target)), fragment):
		t.Errorf("%s links to %s: no such heading", from, link)
	}
}

// anchors returns the URL fragments of the headings of a Markdown text.
func anchors(text string) []string {
	var list []string
	for _, m := range regexp.MustCompile(`(?m)^#{1,6} (.+)$`).FindAllStringSubmatch(withoutCode(text), -1) {
		list = append(list, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1]))
	}
	return list
}

// withoutCode removes fenced blocks, whose lines are not links or headings.
func withoutCode(text string) string {
	return regexp.MustCompile("(?s)\n```.*?\n```").ReplaceAllString(text, "")
}

func docNames(t *testing.T) []string {
	t.Helper()
	entries, err := docs.FS.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

func readDoc(t *testing.T, name string) string {
	t.Helper()
	data, err := docs.FS.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

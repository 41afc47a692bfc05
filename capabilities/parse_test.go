package capabilities

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

func parseFile(t *testing.T, name string) *Snapshot {
	t.Helper()
	s, err := Load(filepath.Join("testdata", name))
	if err != nil {
		t.Fatalf("Load(%s): %v", name, err)
	}
	return s
}

// The file of the source document (003 §1), without extensions.
func TestLoadSource(t *testing.T) {
	got := parseFile(t, "source.yaml")
	checkContent(t, got, &Definition{
		Agents: []*contract.RegistryEntry{
			{ID: "billing_agent", Match: contract.Match{Intent: []string{"cost_analysis"}, Domains: []string{"azure", "databricks"}}},
			{
				ID: "quality_agent",
				Match: contract.Match{
					Intent:  []string{"code_review", "databricks_review", "serverless_review"},
					Domains: []string{"python", "databricks", "semaforo"},
				},
				Constraints: contract.Constraints{MaxTokens: 8000},
			},
			{ID: "rag_agent", Match: contract.Match{Intent: []string{"retrieval_qa", "doc_answering"}, Domains: []string{"kb_internal", "docs"}}},
		},
		Routing:  Routing{ConfidenceThreshold: 0.65, AmbiguityThreshold: 0.1, TopK: 2, ConflictPolicy: "prefer_specific", AutoSplitIfConflict: true, ImpliedDomains: true},
		Fallback: Fallback{Policy: "auto", MaxTokens: 600, Language: "auto"},
	})
	checkLabels(t, got.Catalogue,
		[]string{"code_review", "cost_analysis", "databricks_review", "doc_answering", "retrieval_qa", "serverless_review"},
		[]string{"azure", "databricks", "docs", "kb_internal", "python", "semaforo"})
	for _, hash := range []string{got.Catalogue.Version, got.Fleet.Revision} {
		if got, want := len(hash), len("sha256:")+64; got != want {
			t.Errorf("got a hash of %d characters, want %d", got, want)
		}
	}
}

// checkContent compares a snapshot with the definition it was built from.
func checkContent(t *testing.T, s *Snapshot, want *Definition) {
	t.Helper()
	got := &Definition{Agents: s.Entries(), DomainAliases: s.Catalogue.DomainAliases, Routing: s.Catalogue.Routing, Fallback: s.Catalogue.Fallback, Grants: s.Fleet.Grants}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func checkLabels(t *testing.T, c *Catalogue, intents, domains []string) {
	t.Helper()
	if !slices.Equal(c.Intents, intents) || !slices.Equal(c.Domains, domains) {
		t.Errorf("got intents %q and domains %q, want %q and %q", c.Intents, c.Domains, intents, domains)
	}
}

func TestLoadFull(t *testing.T) {
	got := parseFile(t, "full.yaml")
	checkContent(t, got, &Definition{
		Agents: []*contract.RegistryEntry{
			{
				ID:    "billing_agent",
				Match: contract.Match{Intent: []string{"cost_analysis"}, Domains: []string{"azure", "databricks"}},
				Endpoint: contract.Endpoint{
					Protocol: "mcp", Action: "gis.radius_query", Arguments: map[string]contract.Argument{
						"place": {From: "prompt", Match: "near (.+)"}, "km": {Default: "10", Type: "number"},
					},
				},
				Restore: contract.DataClasses{"email", "phone"},
			},
			{
				ID:       "planner",
				Match:    contract.Match{Intent: []string{"planning"}, Domains: []string{}},
				Endpoint: contract.Endpoint{Protocol: "orchestrator"},
			},
			{
				ID: "quality_agent", Description: "Reviews code",
				Match: contract.Match{
					Intent:  []string{"code_review", "databricks_review", "serverless_review"},
					Domains: []string{"python", "databricks", "semaforo"},
				},
				Examples: map[string][]string{
					"code_review":       {"review my pull request", "revise este código python"},
					"databricks_review": {"check this notebook", "ノートブックを見てください"},
				},
				Keywords:    []string{"pylint", "spark", "c++"},
				NotFor:      []string{"infrastructure changes"},
				Constraints: contract.Constraints{MaxTokens: 8000},
				Requires:    contract.Requires{Scopes: []string{"code:read"}, Tenants: []string{"acme"}},
				Endpoint: contract.Endpoint{
					Protocol: "http", URL: "http://127.0.0.1:9101/tasks", TimeoutMS: 30000, Idempotent: true,
				},
				MCPCapabilities: []string{"gis:radius_query"},
				Restore:         contract.DataClasses{"all"},

				AcceptsDataClasses: contract.DataClasses{"email", "phone"},
				Health:             contract.Health{IntervalS: 30, Path: "/healthz"},
				MaxInFlight:        64,
			},
			{
				ID:       "rag_agent",
				Match:    contract.Match{Intent: []string{"retrieval_qa"}, Domains: []string{"*"}},
				Requires: contract.Requires{DataClasses: []string{"email"}},
				Endpoint: contract.Endpoint{Protocol: "pull"},
				Restore:  contract.DataClasses{"none"},
				Priority: -3,
			},
		},
		Routing: Routing{
			ConfidenceThreshold: 0.65, MinConfidence: new(0.7), AmbiguityThreshold: 0.1, TopK: 2,
			ConflictPolicy: "prefer_specific", AutoSplitIfConflict: true, ImpliedDomains: true,
		},
		Fallback: Fallback{Policy: "A", MaxTokens: 600, Language: "auto"},
		Grants: map[string]contract.Grant{
			"guest_agent": {Intents: []string{"cost_analysis"}, Domains: []string{"azure", "databricks"}},
			"other-agent": {Intents: []string{"planning"}, Domains: []string{"*"}, Priority: 5, Requires: contract.Requires{Scopes: []string{"plan"}}},
		},
	})
	checkLabels(t, got.Catalogue,
		[]string{"code_review", "cost_analysis", "databricks_review", "planning", "retrieval_qa", "serverless_review"},
		[]string{"azure", "databricks", "python", "semaforo"})
	if len(got.Fleet.Warnings) > 0 {
		t.Errorf("got warnings %q, want none", got.Fleet.Warnings)
	}
}

func TestParse_Defaults(t *testing.T) {
	s, err := Parse("f.yaml", []byte("clients: {}\n"))
	if err != nil {
		t.Fatalf("empty registry: got error %v, want none", err)
	}
	checkContent(t, s, &Definition{Routing: DefaultRouting(), Fallback: DefaultFallback()})

	s, err = Parse("f.yaml", []byte("clients: {}\nrouting: {auto_split_if_conflict: false, topk: 3}\nfallback: {language: pt-BR}\n"))
	if err != nil {
		t.Fatal(err)
	}
	routing, fallback := DefaultRouting(), DefaultFallback()
	routing.AutoSplitIfConflict, routing.TopK, fallback.Language = false, 3, "pt-BR"
	checkContent(t, s, &Definition{Routing: routing, Fallback: fallback})
}

func TestParse_AcceptsEveryPolicy(t *testing.T) {
	for policy, want := range map[string]string{
		"auto": "auto", "A": "A", "B": "B", "C": "C", "answer": "A", "refuse": "B", "ticket": "C",
	} {
		s, err := Parse("f.yaml", []byte("clients: {}\nfallback: {policy: "+policy+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Catalogue.Fallback.Policy; got != want {
			t.Errorf("%s: got policy %s, want %s", policy, got, want)
		}
	}
}

func TestSnapshot_SplitsEntries(t *testing.T) {
	s := parseFile(t, "full.yaml")
	for i, a := range s.Catalogue.Agents {
		f := s.Fleet.Agents[i]
		if s.Catalogue.Agent(a.ID) != a || s.Fleet.Agent(a.ID) != f {
			t.Errorf("%s: got another entry from Agent", a.ID)
		}
		if !a.Endpoint.IsZero() || a.Health != (contract.Health{}) || a.MaxInFlight != 0 || a.Restore != nil || a.MCPCapabilities != nil {
			t.Errorf("%s: got keys of the fleet in the catalogue: %+v", a.ID, a)
		}
		if f.Description != "" || f.Match.Intent != nil || f.Examples != nil || f.Keywords != nil || f.Priority != 0 {
			t.Errorf("%s: got keys of the catalogue in the fleet: %+v", a.ID, f)
		}
	}
	for _, id := range []string{"", "a", "nobody", "zzz", "quality_agent2"} {
		if got := s.Entry(id); got != nil {
			t.Errorf("Entry(%q): got %v, want nil", id, got)
		}
	}
}

// Every field of an entry is kept in one of the halves.
func TestSnapshot_EntryIsComplete(t *testing.T) {
	want := &contract.RegistryEntry{}
	v := reflect.ValueOf(want).Elem()
	for _, field := range v.Fields() {
		fillValue(field)
	}
	s, err := NewSnapshot(&Definition{Agents: []*contract.RegistryEntry{want}})
	must(t, err)
	if diff := cmp.Diff(want, s.Entry(want.ID)); diff != "" {
		t.Errorf("Entry (-want +got):\n%s", diff)
	}
}

// fillValue sets a value to a non-zero one.
func fillValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillValue(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		element := reflect.New(v.Type().Elem()).Elem()
		fillValue(element)
		v.SetMapIndex(reflect.ValueOf("x"), element)
	case reflect.Struct:
		for _, field := range v.Fields() {
			fillValue(field)
		}
	}
}

func TestNewSnapshot_RejectsDuplicateID(t *testing.T) {
	_, err := NewSnapshot(&Definition{Agents: []*contract.RegistryEntry{{ID: "a"}, {ID: "b"}, {ID: "a"}}})
	if err == nil || err.Error() != "agent a is declared twice" {
		t.Errorf("got error %v, want \"agent a is declared twice\"", err)
	}
}

func TestThresholdHundredths(t *testing.T) {
	for hundredths := range 111 {
		r := Routing{ConfidenceThreshold: float64(hundredths) / 100}
		if got := r.ThresholdHundredths(); got != hundredths {
			t.Errorf("threshold %v: got %d hundredths, want %d", r.ConfidenceThreshold, got, hundredths)
		}
	}
	for threshold, want := range map[float64]int{0.655: 66, 0.651: 66, 0.6501: 66, 0.001: 1} {
		if got := (Routing{ConfidenceThreshold: threshold}).ThresholdHundredths(); got != want {
			t.Errorf("threshold %v: got %d hundredths, want %d, the lowest score that reaches it", threshold, got, want)
		}
	}
}

const base = `clients:
  a: {match: {intent: [x, y], domains: [d]}, examples: {x: [hello]}, constraints: {max_tokens: 5}}
  b: {match: {intent: [z], domains: []}}
`

func versionOf(t *testing.T, file string) string {
	t.Helper()
	s, err := Parse("f.yaml", []byte(file))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return s.Catalogue.Version
}

func TestVersion_ChangesWithContentOnly(t *testing.T) {
	want := versionOf(t, base)
	same := map[string]string{
		"comments, order, layout, quotes": `# hello
version: 1
clients:
  "b":
    match:
      domains: []
      intent:
        - 'z' # last
  a:
    constraints:
      max_tokens: 5
    examples: {"x": ["hello"]}
    match: {domains: [d], intent: [x, y]}
`,
		"defaults spelled out": base + "routing: {topk: 2, confidence_threshold: 0.650}\nfallback: {policy: auto}\n",
		"ids spelled out":      strings.Replace(base, "a: {match", "a: {id: a, match", 1),
		"empty lists":          strings.Replace(base, "b: {match", "b: {keywords: [], requires: {scopes: []}, match", 1),
		"null min_confidence":  base + "routing: {min_confidence: ~}\n",
	}
	for name, file := range same {
		if got := versionOf(t, file); got != want {
			t.Errorf("%s: got version %s, want the same %s", name, got, want)
		}
	}
	full := base + "routing: {confidence_threshold: 0.7}\nfallback: {policy: C}\n"
	synonyms := strings.NewReplacer("clients:", "agents:", "confidence_threshold:", "score_threshold:", "policy: C", "policy: ticket").Replace(full)
	if got, want := versionOf(t, synonyms), versionOf(t, full); got != want {
		t.Errorf("synonyms of keys: got version %s, want %s as with the canonical keys", got, want)
	}
	other := map[string]string{
		"another agent":      base + "  c: {match: {intent: [x]}}\n",
		"another domain":     strings.Replace(base, "domains: [d]", "domains: [d, e]", 1),
		"another example":    strings.Replace(base, "hello", "hallo", 1),
		"another threshold":  base + "routing: {confidence_threshold: 0.66}\n",
		"min_confidence":     base + "routing: {min_confidence: 0}\n",
		"another policy":     base + "fallback: {policy: C}\n",
		"accepted data":      strings.Replace(base, "b: {match", "b: {accepts_data_classes: none, match", 1),
		"order of the lists": strings.Replace(base, "[x, y]", "[y, x]", 1),
	}
	seen := map[string]string{want: "base"}
	for name, file := range other {
		got := versionOf(t, file)
		if before, ok := seen[got]; ok {
			t.Errorf("%s: got the version of %s, want another", name, before)
		}
		seen[got] = name
	}
}

func TestSnapshot_AcceptedDataClasses(t *testing.T) {
	for name, tc := range map[string]struct{ declared, want contract.DataClasses }{
		"absent": {nil, nil},
		"all":    {contract.DataClasses{"all"}, nil},
		"none":   {contract.DataClasses{"none"}, contract.DataClasses{"none"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := ParseDefinition("f.yaml", []byte(base))
			must(t, err)
			d.Agents[0].AcceptsDataClasses = tc.declared
			s, err := NewSnapshot(d)
			must(t, err)
			if diff := cmp.Diff(tc.want, s.Entry(d.Agents[0].ID).AcceptsDataClasses); diff != "" {
				t.Errorf("accepted (-want +got):\n%s", diff)
			}
		})
	}
}

// The version of the catalogue does not depend on the fleet.
func TestRevision_ChangesWithTheFleetOnly(t *testing.T) {
	parse := func(file string) *Snapshot {
		s, err := Parse("f.yaml", []byte(file))
		must(t, err)
		return s
	}
	first := parse(base)
	seen := map[string]string{first.Fleet.Revision: "base"}
	for name, key := range map[string]string{
		"endpoint":         "endpoint: {protocol: http, url: 'http://127.0.0.1:1/'}",
		"another endpoint": "endpoint: {protocol: http, url: 'http://127.0.0.1:2/'}",
		"health":           "health: {interval_s: 5}",
		"max_in_flight":    "max_in_flight: 3",
		"restore":          "restore: none",
		"mcp_capabilities": "mcp_capabilities: [x]",
		"grants":           "",
	} {
		file := strings.Replace(base, "b: {match", "b: {"+key+", match", 1)
		if key == "" {
			file = base + "grants: {a: {intents: [x], domains: [d]}}\n"
		}
		s := parse(file)
		if s.Catalogue.Version != first.Catalogue.Version {
			t.Errorf("%s: got another version of the catalogue, want the same", name)
		}
		if before, ok := seen[s.Fleet.Revision]; ok {
			t.Errorf("%s: got the revision of %s, want another", name, before)
		}
		seen[s.Fleet.Revision] = name
	}
	if s := parse(strings.Replace(base, "hello", "hallo", 1)); s.Fleet.Revision != first.Fleet.Revision {
		t.Error("another example: got another revision of the fleet, want the same")
	}
	for name, change := range map[string]func(*Definition){
		"state":     func(d *Definition) { d.Agents[0].State = contract.AgentDraining },
		"disabled":  func(d *Definition) { d.Disabled = map[string]bool{"a": true} },
		"instances": func(d *Definition) { d.Agents[0].Instances = []contract.Instance{{Name: "one"}} },
	} {
		d, err := ParseDefinition("f.yaml", []byte(base))
		must(t, err)
		change(d)
		s, err := NewSnapshot(d)
		must(t, err)
		if before, ok := seen[s.Fleet.Revision]; ok || s.Catalogue.Version != first.Catalogue.Version {
			t.Errorf("%s: got the revision of %q, or another catalogue", name, before)
		}
		seen[s.Fleet.Revision] = name
	}
}

func TestLoadErrors(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "absent.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: got error %v, want %v", err, os.ErrNotExist)
	}
	path := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 100_000_000); err != nil {
		t.Fatal(err)
	}
	_, err := Load(path)
	if list, ok := errors.AsType[strictyaml.Errors](err); !ok || !strings.Contains(list.Error(), "is 100000000 bytes long; at most 67108864 are read") {
		t.Errorf("100 MB file: got error %v, want one that names its size", err)
	}
}

// Parse returns the same result for the same file, independent of the order of maps.
func TestParse_IsDeterministic(t *testing.T) {
	data := generateRegistry(50)
	first := versionOf(t, string(data))
	wrong := bytes.ReplaceAll(data, []byte("max_tokens: 8000"), []byte("max_tokens: -1"))
	_, firstErr := Parse("f.yaml", wrong)
	for range 20 {
		if got := versionOf(t, string(data)); got != first {
			t.Fatalf("got version %s, then %s", first, got)
		}
		if _, err := Parse("f.yaml", wrong); err.Error() != firstErr.Error() {
			t.Fatalf("got errors\n%v\nthen\n%v", firstErr, err)
		}
	}
}

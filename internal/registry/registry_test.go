package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictyaml"
	"github.com/caprouter/caprouter/internal/testkit"
)

const (
	reloaded    = "INFO registry reloaded"
	notReloaded = "ERROR registry not reloaded"
	goodAgain   = "INFO registry file is good again"

	brokenRegistry = "clients:\n  a: {match: {intents: [x]}}\n"
)

// registryOf returns a registry file with one agent.
func registryOf(agent string) string {
	return "clients:\n  " + agent + ":\n    match: {intent: [x], domains: [d]}\n"
}

func versionOf(t *testing.T, file string) string {
	t.Helper()
	s, err := capabilities.Parse("f.yaml", []byte(file))
	requireNoError(t, err)
	return s.Catalogue.Version
}

// testRegistry is a Registry over a real file, and perhaps other sources.
type testRegistry struct {
	*Registry
	t       *testing.T
	file    *File
	path    string
	applied chan string // the agents of each version, joined
	logged  chan string // the lines of the log
	reports chan error
}

func newRegistry(t *testing.T, content string, others ...Source) *testRegistry {
	t.Helper()
	r := &testRegistry{
		t: t, path: newPath(t), applied: make(chan string, 4096), logged: make(chan string, 4096), reports: make(chan error, 4096),
	}
	r.write(content)
	var err error
	r.file, err = OpenFile(FileConfig{Path: r.path, Debounce: 5 * time.Millisecond, Poll: 20 * time.Millisecond})
	requireNoError(t, err)
	r.Registry, err = New(Config{
		Logger: slog.New(lineHandler{r.logged}),
		Apply:  func(s *capabilities.Snapshot) { r.applied <- describeAgents(s) },
		Report: func(_ *capabilities.Snapshot, err error) { r.reports <- err },
	}, append([]Source{r.file}, others...)...)
	requireNoError(t, err)
	testkit.Receive(t, r.applied)
	r.wantReport(false)
	return r
}

// describeAgents lists the agents of a version, with the origin of those that
// registered themselves.
func describeAgents(s *capabilities.Snapshot) string {
	var ids []string
	for _, a := range s.Entries() {
		if a.Origin != contract.OriginFile {
			a.ID += "(" + string(a.Origin) + ")"
		}
		ids = append(ids, a.ID)
	}
	return strings.Join(ids, ",")
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "capabilities.yaml") }

func (r *testRegistry) run() {
	ended := make(chan error, 1)
	go func() { ended <- r.Run(r.t.Context()) }()
	r.t.Cleanup(func() { // the context ended at this moment
		if err := testkit.Receive(r.t, ended); err != nil {
			r.t.Errorf("Run: got error %v, want none", err)
		}
	})
}

func (r *testRegistry) write(content string) { writeFile(r.t, r.path, content) }

// replace writes another file and renames it over, as editors do.
func (r *testRegistry) replace(content string) {
	r.t.Helper()
	writeFile(r.t, r.path+".tmp", content)
	requireNoError(r.t, os.Rename(r.path+".tmp", r.path))
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	requireNoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *testRegistry) wantApplied(agents string) {
	r.t.Helper()
	if got := testkit.Receive(r.t, r.applied); got != agents {
		r.t.Fatalf("applied a registry of %q, want %q", got, agents)
	}
}

func (r *testRegistry) wantLogged(text string) {
	r.t.Helper()
	if got := testkit.Receive(r.t, r.logged); !strings.Contains(got, text) {
		r.t.Fatalf("logged %q, want %q in it", got, text)
	}
}

func (r *testRegistry) wantReport(failed bool) {
	r.t.Helper()
	if got := testkit.Receive(r.t, r.reports); (got != nil) != failed {
		r.t.Errorf("reported error %v, want an error: %v", got, failed)
	}
}

// wantNothing fails if an event occurred that the test has not waited for.
func (r *testRegistry) wantNothing() {
	r.t.Helper()
	select {
	case got := <-r.applied:
		r.t.Errorf("applied a registry of %q, want nothing applied", got)
	case got := <-r.logged:
		r.t.Errorf("logged %q, want nothing logged", got)
	case got := <-r.reports:
		r.t.Errorf("reported %v, want no report", got)
	default:
	}
}

// lineHandler is a log whose lines arrive on a channel.
type lineHandler struct{ lines chan<- string }

func (h lineHandler) Handle(_ context.Context, record slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", record.Level, record.Message)
	record.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	h.lines <- b.String()
	return nil
}

func (lineHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h lineHandler) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h lineHandler) WithGroup(string) slog.Handler          { return h }

// registrations is a source of agents without a file, like self-registered agents.
type registrations struct {
	mu         sync.Mutex
	definition *capabilities.Definition
	err        error
	changed    func()
}

func (s *registrations) State() (*capabilities.Definition, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.definition, s.err
}

func (s *registrations) Notify(changed func()) { s.changed = changed }

func (s *registrations) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (s *registrations) set(err error, ids ...string) {
	d := &capabilities.Definition{Routing: capabilities.Routing{TopK: 7}}
	for _, id := range ids {
		d.Agents = append(d.Agents, &contract.RegistryEntry{
			ID: id, Match: contract.Match{Intent: []string{"x"}, Domains: []string{"d"}}, Origin: contract.OriginRegistration,
		})
	}
	s.mu.Lock()
	s.err = err
	if err == nil {
		s.definition = d
	}
	s.mu.Unlock()
	if s.changed != nil {
		s.changed()
	}
}

func TestOpenFile_RequiresValidFile(t *testing.T) {
	path := newPath(t)
	if _, err := OpenFile(FileConfig{Path: path}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: got error %v, want %v", err, os.ErrNotExist)
	}
	writeFile(t, path, brokenRegistry)
	_, err := OpenFile(FileConfig{Path: path})
	if _, ok := errors.AsType[strictyaml.Errors](err); !ok {
		t.Errorf("broken file: got error %v, want strictyaml.Errors", err)
	}
}

func TestFile_OptionalMayComeLaterButNotLeave(t *testing.T) {
	path := newPath(t)
	f, err := OpenFile(FileConfig{Path: path, Optional: true})
	requireNoError(t, err)
	if d, err := f.State(); err != nil || len(d.Agents) != 0 {
		t.Fatalf("absent file: got %v and error %v, want an empty registry", d, err)
	}
	writeFile(t, path, registryOf("a"))
	requireNoError(t, f.Reload())
	requireNoError(t, os.Remove(path))
	if err := f.Reload(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("removed file: got error %v, want %v", err, os.ErrNotExist)
	}
	if d, _ := f.State(); len(d.Agents) != 1 {
		t.Errorf("removed file: got %d agents, want the last valid content with 1", len(d.Agents))
	}
}

// A corrected file mode is no event, and changes neither size nor time.
func TestRegistry_SeesCorrectedFileMode(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("the mode of a file does not restrict root")
	}
	r := newRegistry(t, registryOf("first"))
	r.write(registryOf("second"))
	requireNoError(t, os.Chmod(r.path, 0))
	if err := r.file.Reload(); !errors.Is(err, os.ErrPermission) {
		t.Errorf("Reload: got error %v, want %v", err, os.ErrPermission)
	}
	requireNoError(t, os.Chmod(r.path, 0o600))
	requireNoError(t, r.file.Reload())
	r.wantApplied("second")
}

func TestRegistry_StatusOfReloads(t *testing.T) {
	path := newPath(t)
	writeFile(t, path, registryOf("a"))
	file, err := OpenFile(FileConfig{Path: path})
	requireNoError(t, err)
	first := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	now := first
	r, err := New(Config{Now: func() time.Time { return now }}, file)
	requireNoError(t, err)
	if got, want := r.Status(), (Status{Version: versionOf(t, registryOf("a")), LoadedAt: first}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	now = first.Add(time.Hour)
	requireNoError(t, file.Reload())
	if got := r.Status(); !got.LoadedAt.Equal(first) {
		t.Errorf("no change: got %+v, want the time of the first load", got)
	}
	writeFile(t, path, registryOf("b"))
	requireNoError(t, file.Reload())
	if got, want := r.Status(), (Status{Version: versionOf(t, registryOf("b")), LoadedAt: now}); got != want {
		t.Errorf("reloaded: got %+v, want %+v", got, want)
	}
	if got := r.Current().Catalogue.Agents[0].ID; got != "b" {
		t.Errorf("got agent %s in force, want b", got)
	}
}

func TestRegistry_AppliesEachVersionOnce(t *testing.T) {
	r := newRegistry(t, registryOf("first"))
	requireNoError(t, r.file.Reload())
	r.wantNothing()

	r.write(registryOf("first") + "# a comment\n")
	requireNoError(t, r.file.Reload())
	r.wantNothing()

	r.write(registryOf("second"))
	requireNoError(t, r.file.Reload())
	r.wantApplied("second")
	r.wantLogged(reloaded)
	r.wantReport(false)
	r.wantNothing()
}

// A change of the fleet is a new version of the registry with the same catalogue.
func TestRegistry_AppliesFleetChange(t *testing.T) {
	r := newRegistry(t, registryOf("first"))
	before := r.Current()
	r.write(registryOf("first") + "    endpoint: {protocol: http, url: 'http://127.0.0.1:1/'}\n")
	requireNoError(t, r.file.Reload())
	r.wantApplied("first")
	after := r.Current()
	if after.Catalogue.Version != before.Catalogue.Version || after.Fleet.Revision == before.Fleet.Revision {
		t.Errorf("got catalogue %s and fleet %s, want the catalogue %s and another fleet", after.Catalogue.Version, after.Fleet.Revision, before.Catalogue.Version)
	}
}

// An error that persists is logged once; each other one is logged as well.
func TestRegistry_LogsDistinctErrorsOnce(t *testing.T) {
	r := newRegistry(t, registryOf("first"))
	fails := func(content, want string) {
		t.Helper()
		if content != "" {
			r.write(content)
		}
		if err := r.file.Reload(); err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("Reload: got error %v, want %q in it", err, want)
		}
		if s := r.Status(); s.Err == nil || s.Version != versionOf(t, registryOf("first")) {
			t.Fatalf("got status %+v, want an error and the first version", s)
		}
	}
	logged := func(want string) {
		t.Helper()
		r.wantLogged(want)
		r.wantReport(true)
	}
	fails(brokenRegistry, "intents")
	logged("intents")
	for range 3 {
		fails("", "intents")
	}
	fails(brokenRegistry+"# the same mistake\n", "intents")
	r.wantNothing()
	fails("clients: []\n", "must be a mapping")
	logged("must be a mapping")
	fails("", "must be a mapping")
	requireNoError(t, os.Remove(r.path))
	fails("", "no such file")
	logged("no such file")
	fails("clients: []\n", "must be a mapping")
	logged("must be a mapping")
	r.wantNothing()
	r.write(registryOf("first"))
	requireNoError(t, r.file.Reload())
	r.wantLogged(goodAgain)
	r.wantReport(false)
	if s := r.Status(); s.Err != nil {
		t.Errorf("got error %v, want none", s.Err)
	}
	r.wantNothing()
}

func TestRun_KeepsLastValidVersion(t *testing.T) {
	r := newRegistry(t, registryOf("first"))
	r.run()
	r.replace(brokenRegistry)
	r.wantLogged(`capabilities.yaml:2:15: unknown key "intents"; did you mean "intent"?`)
	r.replace(registryOf("fixed"))
	r.wantApplied("fixed")
	r.wantLogged(reloaded)

	r.replace(brokenRegistry)
	r.wantLogged(notReloaded)
	r.replace(registryOf("fixed") + "# only a comment more\n")
	r.wantLogged(goodAgain)
}

func TestMerge_FileWinsOverRegistration(t *testing.T) {
	agents := &registrations{}
	agents.set(nil, "b", "c")
	r := newRegistry(t, registryOf("a"), agents)
	if diff := cmp.Diff("a,b(registration),c(registration)", describeAgents(r.Current())); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	if got := r.Current().Catalogue.Routing; got != capabilities.DefaultRouting() {
		t.Errorf("got routing %+v, want the rules of the file", got)
	}

	agents.set(nil, "a", "c")
	r.wantApplied("a,c(registration)")
	r.write(registryOf("c"))
	requireNoError(t, r.file.Reload())
	r.wantApplied("a(registration),c")
	if got := r.Current().Fleet.Agent("c").Origin; got != contract.OriginFile {
		t.Errorf("got origin %q of an agent that is in the file, want that of the file", got)
	}
}

// A source that fails keeps its last valid content and does not block the others.
func TestMerge_KeepsContentOfFailingSource(t *testing.T) {
	agents := &registrations{}
	agents.set(nil, "b")
	r := newRegistry(t, registryOf("a"), agents)
	unavailable := errors.New("unavailable")
	agents.set(unavailable)
	r.wantLogged("unavailable")
	r.wantReport(true)
	r.write(registryOf("c"))
	requireNoError(t, r.file.Reload())
	r.wantApplied("b(registration),c")
	r.wantLogged(reloaded)
	if err := r.Status().Err; !errors.Is(err, unavailable) {
		t.Errorf("got error %v, want %v", err, unavailable)
	}
}

func TestNew_NeedsValidSources(t *testing.T) {
	path := newPath(t)
	writeFile(t, path, registryOf("a"))
	file, err := OpenFile(FileConfig{Path: path})
	requireNoError(t, err)
	unavailable := errors.New("unavailable")
	agents := &registrations{}
	agents.set(unavailable)
	if _, err := New(Config{}, file, agents); !errors.Is(err, unavailable) {
		t.Errorf("got error %v, want %v", err, unavailable)
	}
}

package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/matcher"
	"github.com/caprouter/caprouter/router"
)

// viewFixture is a viewBuilder with a set training duration.
type viewFixture struct {
	*viewBuilder
	t        *testing.T
	group    *run.Group
	duration time.Duration // of a training

	mu        sync.Mutex
	installed []string // by install: descriptions, endpoints and states of the view
	trainings int
	running   int
}

// startViews runs a builder until the test ends, in a synctest bubble.
func startViews(t *testing.T, duration time.Duration) *viewFixture {
	f := &viewFixture{t: t, duration: duration}
	f.viewBuilder = newViewBuilder(f.train, noLiveStates{}, f.install)
	f.group = run.New(t.Context())
	f.startBuilding(f.group)
	t.Cleanup(func() { // the context has ended before
		if err := f.group.Wait(); err != nil {
			t.Errorf("got the builder stopped with %v", err)
		}
	})
	return f
}

func (f *viewFixture) train(ctx context.Context, _ *capabilities.Catalogue) (*lexical.Model, error) {
	f.count(1)
	defer f.count(-1)
	select {
	case <-time.After(f.duration):
		return lexical.Train(lexical.Corpus{}), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *viewFixture) count(running int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trainings += max(running, 0)
	if f.running += running; f.running > 1 {
		f.t.Errorf("got %d concurrent trainings, want one", f.running)
	}
}

func (f *viewFixture) install(v *router.View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var text strings.Builder
	for _, a := range v.Catalogue.Agents {
		fmt.Fprintf(&text, "%s %s @%s ", a.ID, a.Description, v.Fleet.Agent(a.ID).Endpoint.URL)
		if v.Fleet.Agent(a.ID).State == contract.AgentDisabled {
			text.WriteString("disabled ")
		}
	}
	f.installed = append(f.installed, text.String())
}

// checkInstalled compares the views that were installed since the last call, after the given time.
func (f *viewFixture) checkInstalled(after time.Duration, want ...string) {
	f.t.Helper()
	advance(after)
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.installed, want) {
		f.t.Errorf("got %q installed, want %q", f.installed, want)
	}
	f.installed = nil
}

// advance waits for the time of the synctest bubble to pass.
func advance(d time.Duration) { <-time.After(d) }

type noLiveStates struct{}

func (noLiveStates) SetAgents(agents []*contract.RegistryEntry) matcher.Live {
	return make(matcher.Live, len(agents))
}

// version returns a registry with agents "id description url".
func version(t *testing.T, agents ...[3]string) *capabilities.Snapshot {
	t.Helper()
	d := &capabilities.Definition{Routing: capabilities.DefaultRouting()}
	for _, a := range agents {
		d.Agents = append(d.Agents, &contract.RegistryEntry{
			ID: a[0], Description: a[1], Match: contract.Match{Intent: []string{"x"}}, Endpoint: contract.Endpoint{URL: a[2]},
		})
	}
	return versionOf(t, d)
}

// registered returns a registry with registered agents, each with its own intent.
func registered(ids ...string) *capabilities.Definition {
	d := &capabilities.Definition{Routing: capabilities.DefaultRouting(), Grants: map[string]contract.Grant{}}
	for _, id := range ids {
		d.Agents = append(d.Agents, &contract.RegistryEntry{ID: id, Match: contract.Match{Intent: []string{"do_" + id}}, Origin: contract.OriginRegistration})
		d.Grants[id] = contract.Grant{Intents: []string{"do_" + id}}
	}
	return d
}

func versionOf(t *testing.T, d *capabilities.Definition) *capabilities.Snapshot {
	t.Helper()
	s, err := capabilities.NewSnapshot(d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const trainingTime = 3 * time.Second

func TestViewBuilder_TrainsFirstModelAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startViews(t, trainingTime)
		f.Update(version(t, [3]string{"a", "one", "1"}))
		f.checkInstalled(trainingTime - 1)
		select {
		case <-f.ready:
			t.Error("got ready before the first model is trained")
		default:
		}
		f.checkInstalled(1, "a one @1 ")
		<-f.ready // closed; otherwise the bubble is deadlocked, which fails the test
	})
}

func TestViewBuilder_StopEndsTraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startViews(t, trainingTime)
		f.Update(version(t, [3]string{"a", "one", "1"}))
		f.checkInstalled(trainingTime / 3)
		stopped := time.Now()
		f.group.Stop(nil)
		if err := f.group.Wait(); err != nil || f.trainings != 1 {
			t.Errorf("got %v and %d trainings, want one that is stopped", err, f.trainings)
		}
		if took := time.Since(stopped); took != 0 {
			t.Errorf("got %v from the stop to the end, want the training ended at once", took)
		}
	})
}

// A training is logged once if it takes long, and not if it is about to end.
func TestLogTraining(t *testing.T) {
	var out bytes.Buffer
	s := version(t, [3]string{"a", "one", "1"})
	now := time.Now()
	train := func(step time.Duration) string {
		out.Reset()
		report := logTraining(slog.New(slog.NewTextHandler(&out, nil)), s.Catalogue, func() time.Time { return now })
		for done := range 100 {
			now = now.Add(step)
			report(done+1, 100)
		}
		return out.String()
	}
	if got := train(quietTraining / 100); got != "" {
		t.Errorf("a short training: got log %q, want none", got)
	}
	if got := train(quietTraining / 10); strings.Count(got, "\n") != 1 || !strings.Contains(got, `msg="training the lexical classifier" percent=10 agents=1`) {
		t.Errorf("a long training: got log %q, want one line, after %v", got, quietTraining)
	}
}

func TestViewBuilder_TrainsAfterLastCatalogueChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startViews(t, trainingTime)
		f.Update(version(t, [3]string{"a", "one", "1"}))
		f.checkInstalled(trainingTime, "a one @1 ")
		for i := range 5 {
			f.Update(version(t, [3]string{"a", fmt.Sprint(i), "1"}))
			f.checkInstalled(trainingDelay - 1)
		}
		f.checkInstalled(trainingTime) // one nanosecond is left
		f.checkInstalled(1, "a 4 @1 ")
		if f.trainings != 2 {
			t.Errorf("got %d trainings, want 2", f.trainings)
		}
	})
}

func TestViewBuilder_DisablesAgentsBeforeTraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startViews(t, trainingTime)
		enabled := versionOf(t, registered("a", "b"))
		f.Update(enabled)
		f.checkInstalled(trainingTime, "a  @ b  @ ")
		disabled := registered("a", "b")
		disabled.Disabled = map[string]bool{"b": true}
		f.Update(versionOf(t, disabled)) // its catalogue differs, because the classifier does not learn from b
		f.checkInstalled(0, "a  @ b  @ disabled ")
		f.Update(enabled)
		f.checkInstalled(0, "a  @ b  @ ")
		f.checkInstalled(2 * trainingTime)

		f.Update(versionOf(t, disabled))
		f.checkInstalled(0, "a  @ b  @ disabled ")
		f.checkInstalled(trainingDelay+trainingTime, "a  @ b  @ disabled ")

		wider := registered("a", "b", "c")
		f.Update(versionOf(t, wider))
		f.checkInstalled(trainingDelay + trainingTime/2) // b is enabled in the version that is trained
		wider.Disabled = map[string]bool{"a": true, "b": true}
		f.Update(versionOf(t, wider))
		f.checkInstalled(0, "a  @ disabled b  @ disabled ")
		f.checkInstalled(trainingTime, "a  @ disabled b  @ disabled c  @ ")
	})
}

func TestViewBuilder_TrainsUnderConstantChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startViews(t, 0)
		f.Update(version(t, [3]string{"a", "one", "1"}))
		f.checkInstalled(0, "a one @1 ")
		const step = trainingDelay / 2
		for i := range int(maxTrainingDelay / step) {
			f.Update(version(t, [3]string{"a", fmt.Sprint(i), "1"}))
			advance(step)
		}
		f.checkInstalled(0, "a 19 @1 ")
	})
}

func TestViewBuilder_SwapsFleetWithoutTraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startViews(t, trainingTime)
		f.Update(version(t, [3]string{"a", "one", "1"}))
		f.checkInstalled(trainingTime, "a one @1 ")
		before := f.view
		f.Update(version(t, [3]string{"a", "one", "2"}))
		f.checkInstalled(0, "a one @2 ")
		if after := f.view; after.Lexical != before.Lexical || after.Index != before.Index || f.trainings != 1 {
			t.Errorf("got another model or index after %d trainings, want those of the first", f.trainings)
		}
	})
}

// A registered agent without new labels or examples is in use at once.
func TestViewBuilder_AddsRegisteredAgentsWithoutTraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startViews(t, trainingTime)
		registry := func(state contract.AgentState, registered ...string) *capabilities.Snapshot {
			d := &capabilities.Definition{Routing: capabilities.DefaultRouting(), Grants: map[string]contract.Grant{}}
			d.Agents = append(d.Agents, &contract.RegistryEntry{ID: "a", Match: contract.Match{Intent: []string{"x"}}})
			for _, id := range registered {
				r := contract.Registration{Match: contract.Match{Intent: []string{"x"}}, Endpoint: contract.Endpoint{URL: id}}
				entry := r.Entry(id)
				entry.State = state
				d.Agents, d.Grants[id] = append(d.Agents, entry), contract.Grant{Intents: []string{"x"}}
			}
			s, err := capabilities.NewSnapshot(d)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		f.Update(registry(""))
		f.checkInstalled(trainingTime, "a  @ ")
		before := f.view
		f.Update(registry(contract.AgentActive, "b"))
		f.checkInstalled(0, "a  @ b  @b ")
		joined := f.view
		if joined.Lexical != before.Lexical || joined.Index == before.Index || len(joined.Live) != 2 {
			t.Errorf("got the same index, or another model, with %d live states", len(joined.Live))
		}
		f.Update(registry(contract.AgentExpired, "b"))
		f.checkInstalled(0, "a  @ b  @b ")
		if f.view.Index != joined.Index || f.view.Fleet.Agent("b").State != contract.AgentExpired {
			t.Error("got the index built again for another state, or the state not installed")
		}
		f.Update(registry(""))
		f.checkInstalled(0, "a  @ ")
		if f.trainings != 1 {
			t.Errorf("got %d trainings, want 1", f.trainings)
		}
	})
}

// A change of both parts takes effect atomically: the endpoint of a new version must never be used
// with the access rules of an older one.
func TestViewBuilder_InstallsCatalogueAndFleetTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startViews(t, trainingTime)
		f.Update(version(t, [3]string{"a", "one", "1"}, [3]string{"gone", "one", "1"}))
		f.checkInstalled(trainingTime, "a one @1 gone one @1 ")
		f.Update(version(t, [3]string{"a", "two", "2"}, [3]string{"new", "two", "2"}))
		f.checkInstalled(trainingDelay)
		f.Update(version(t, [3]string{"a", "two", "3"}, [3]string{"new", "two", "3"}))
		f.checkInstalled(trainingTime, "a two @3 new two @3 ")
		f.checkInstalled(time.Hour)
	})
}

// If the catalogue changes during a training, the trained version is installed with its own fleet,
// and then the newer version.
func TestViewBuilder_InstallsTrainedCatalogueWithOwnFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startViews(t, trainingTime)
		f.Update(version(t, [3]string{"a", "one", "1"}))
		f.checkInstalled(time.Second)
		f.Update(version(t, [3]string{"a", "two", "2"}))
		f.checkInstalled(trainingTime-time.Second, "a one @1 ")
		f.checkInstalled(trainingDelay+trainingTime, "a two @2 ")
	})
}

func TestViewBuilder_SwapsFleetDuringTraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startViews(t, trainingTime)
		f.Update(version(t, [3]string{"a", "one", "1"}))
		f.checkInstalled(trainingTime, "a one @1 ")
		f.Update(version(t, [3]string{"a", "two", "2"}))
		f.checkInstalled(trainingDelay + time.Second)
		f.Update(version(t, [3]string{"a", "one", "3"})) // reverts the catalogue
		f.checkInstalled(0, "a one @3 ")
		f.checkInstalled(time.Hour)
	})
}

func TestViewBuilder_TrainsAgainAfterChangeDuringTraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startViews(t, trainingTime)
		f.Update(version(t, [3]string{"a", "one", "1"}))
		f.checkInstalled(time.Second)
		f.Update(version(t, [3]string{"a", "two", "1"}, [3]string{"b", "two", "1"}))
		f.checkInstalled(trainingTime-time.Second, "a one @1 ")
		f.checkInstalled(trainingDelay+trainingTime, "a two @1 b two @1 ")
	})
}

func TestViewBuilder_DropsModelOfRevertedCatalogue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startViews(t, trainingTime)
		one := version(t, [3]string{"a", "one", "1"})
		f.Update(one)
		f.checkInstalled(trainingTime, "a one @1 ")
		f.Update(version(t, [3]string{"a", "two", "1"}))
		f.checkInstalled(trainingDelay + time.Second)
		f.Update(one)
		f.checkInstalled(time.Hour)

		f.Update(version(t, [3]string{"a", "two", "1"}))
		f.checkInstalled(trainingDelay / 2)
		f.Update(one) // before the training
		f.checkInstalled(time.Hour)
		if f.trainings != 2 {
			t.Errorf("got %d trainings, want 2", f.trainings)
		}
	})
}

func TestReadiness_StartingWithoutView(t *testing.T) {
	s := startServer(t, "clients:\n"+entry("a_agent", "code_review", "python", ""))
	view := s.core.router.View()
	s.core.router.SetView(nil) // as before the first training
	resp, err := http.Get(s.url("/readyz"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var ready struct {
		Status   string
		Registry struct{ Version string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&ready); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusServiceUnavailable || ready.Status != "starting" || ready.Registry.Version != view.Catalogue.Version {
		t.Errorf("got %d %+v, want 503, starting, version %s", resp.StatusCode, ready, view.Catalogue.Version)
	}
	if status, body := s.post(t.Context(), dryReview); status != http.StatusServiceUnavailable || !strings.Contains(string(body), `"overloaded"`) {
		t.Errorf("request: got %d %s, want 503 overloaded", status, body)
	}
	s.core.router.SetView(view)
	if got := s.get("/readyz"); !strings.Contains(got, `"status":"ready"`) {
		t.Errorf("got %s, want ready", got)
	}
}

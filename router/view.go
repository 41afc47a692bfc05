package router

import (
	"sync/atomic"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/broadcast"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/visibility"
	"github.com/caprouter/caprouter/matcher"
)

// View is one version of the configuration, prepared for routing: the catalogue
// with its match index and lexical model, and the fleet with the live state of
// its agents. It is immutable; only the live state behind it changes.
type View struct {
	Catalogue *capabilities.Catalogue
	Index     *matcher.Index
	Lexical   *lexical.Model // trained on Catalogue.Learned

	Fleet *capabilities.Fleet // contains all agents of Catalogue
	Live  matcher.Live        // by ordinal of Index
}

// LiveSource provides the live states of agents, in the order of the slice. The
// state of an agent survives reloads.
type LiveSource interface {
	SetAgents(agents []*contract.RegistryEntry) matcher.Live
}

// NewView prepares a snapshot for routing. It trains the lexical model, which
// takes time proportional to the catalogue.
func NewView(s *capabilities.Snapshot, live LiveSource) *View {
	return NewTrainedView(s, lexical.Train(classifier.BuildCorpus(s.Catalogue)), live)
}

// NewTrainedView is NewView with a model that was trained on the catalogue.
func NewTrainedView(s *capabilities.Snapshot, model *lexical.Model, live LiveSource) *View {
	c := s.Catalogue
	v := &View{Catalogue: c, Lexical: model, Index: buildIndex(c)}
	return v.withFleet(s.Fleet, live)
}

// WithMembers returns a view of a snapshot that has the same version of the catalogue,
// so that no training is needed: only registered agents, addresses and states differ.
func (v *View) WithMembers(s *capabilities.Snapshot, live LiveSource) *View {
	next := *v
	if s.Catalogue.Members != v.Catalogue.Members {
		next.Catalogue, next.Index = s.Catalogue, buildIndex(s.Catalogue)
	}
	return next.withFleet(s.Fleet, live)
}

func buildIndex(c *capabilities.Catalogue) *matcher.Index {
	return matcher.Build(c.Agents, matcher.DefaultWeights(), c.Routing.ThresholdHundredths())
}

func (v *View) withFleet(f *capabilities.Fleet, live LiveSource) *View {
	indexed := v.Index.Agents()
	agents := make([]*contract.RegistryEntry, len(indexed))
	for i, a := range indexed {
		agents[i] = f.Agent(a.ID)
	}
	v.Fleet, v.Live = f, live.SetAgents(agents)
	return v
}

// Snapshot returns the version of the registry that the view was made of.
func (v *View) Snapshot() *capabilities.Snapshot {
	return &capabilities.Snapshot{Catalogue: v.Catalogue, Fleet: v.Fleet}
}

// SetView makes v the view of every request that starts from now on.
func (r *Router) SetView(v *View) { r.view.set(v) }

// View returns the current view, nil before the first SetView.
func (r *Router) View() *View { return r.view.Load() }

// currentView is the view that new requests get.
type currentView struct {
	atomic.Pointer[View]
	changes broadcast.Signal
}

// set makes v the current view.
func (c *currentView) set(v *View) {
	c.Store(v)
	c.changes.Broadcast()
}

// get returns the current view, which is empty before the first SetView.
func (c *currentView) get() *View {
	if v := c.Load(); v != nil {
		return v
	}
	return &View{Catalogue: &capabilities.Catalogue{}, Fleet: &capabilities.Fleet{}}
}

func (c *currentView) catalogue() *capabilities.Catalogue { return c.get().Catalogue }

// filter returns the visibility filter for what the caller may see of its own
// request.
func (c *currentView) filter(caller *contract.Caller) *visibility.Filter {
	return visibility.NewFilter(c.catalogue(), caller, caller)
}

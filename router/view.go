package router

import (
	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/matcher"
)

// View is what is configured, made ready for routing: the registry, the match
// index over it, the agents' live state and the lexical model. It is built off
// the request path and never changed; only the live state inside it moves.
type View struct {
	Registry *capabilities.Snapshot
	Index    *matcher.Index
	Live     matcher.Live
	Lexical  *lexical.Model
}

// LiveSource gives the live states of agents, aligned with the slice. The
// state of one agent stays the same over reloads.
type LiveSource interface {
	SetAgents(agents []*contract.RegistryEntry) matcher.Live
}

// NewView builds everything a registry snapshot needs to be routed on.
func NewView(s *capabilities.Snapshot, live LiveSource) *View {
	index := matcher.Build(s.Agents, matcher.DefaultWeights(), s.Routing.ThresholdHundredths())
	return &View{
		Registry: s,
		Index:    index,
		Live:     live.SetAgents(index.Agents()),
		Lexical:  lexical.Train(classifier.BuildCorpus(s)),
	}
}

// SetView makes v the view of every request that starts from now on.
func (r *Router) SetView(v *View) { r.view.Store(v) }

// View returns the current view, nil before the first SetView.
func (r *Router) View() *View { return r.view.Load() }

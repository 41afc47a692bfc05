package prompts

// Agent is one agent as the router's prompt shows it. Names are shown exactly:
// a reply must repeat them. The other texts are cleaned and capped.
type Agent struct {
	ID               string
	Intents, Domains []string
	Description      string
	Examples, NotFor []string // best first: the first few are shown
}

// What the summary shows of one agent, and of all of them.
const (
	maxDescription = 200 // characters
	maxUtterance   = 120 // of an example, or of what it is not for
	maxExamples    = 3
	maxNotFor      = 2

	maxSummary = 32 << 10 // bytes
	leastLine  = len("- \"\": intents {\"\"}; domains {}\n")
)

// detail says how much the summary shows of each agent.
type detail struct {
	examples, description, notFor bool
	names                         int // intents, and domains, of one agent; 0 = all
}

// details are tried in turn until the summary is small enough. What an agent is
// not for goes last of its texts: it is what keeps a wrong agent out.
func details() []detail {
	return []detail{
		{examples: true, description: true, notFor: true},
		{description: true, notFor: true},
		{notFor: true},
		{},
		{names: 16},
		{names: 4},
	}
}

type (
	registryView struct {
		Agents     []agentView
		MoreAgents int // not shown
	}
	agentView struct {
		ID                            literal
		Intents, Domains              literal
		MoreIntents, MoreDomains      int // not shown
		Description, Examples, NotFor literal
	}
)

// summary renders the agents in at most maxSummary bytes: with less and less of
// each, and at last with fewer of them.
func summary(agents []Agent) string {
	possible := agents[:min(len(agents), maxSummary/leastLine)]
	view := registryView{MoreAgents: len(agents) - len(possible)}
	for _, d := range details() {
		view.Agents = d.views(possible)
		if text := execute("registry.txt", view); len(text) <= maxSummary {
			return text
		}
	}
	// Names are short where the registry was checked; were they not, no agent is
	// left in the end, which fits.
	for {
		view.Agents = view.Agents[:len(view.Agents)/2]
		view.MoreAgents = len(agents) - len(view.Agents)
		if text := execute("registry.txt", view); len(text) <= maxSummary {
			return text
		}
	}
}

func (d detail) views(agents []Agent) []agentView {
	views := make([]agentView, len(agents))
	for i := range agents {
		views[i] = d.view(&agents[i])
	}
	return views
}

func (d detail) view(a *Agent) agentView {
	view := agentView{ID: quote(a.ID)}
	view.Intents, view.MoreIntents = d.list(a.Intents)
	view.Domains, view.MoreDomains = d.list(a.Domains)
	if text := clean(a.Description, maxDescription); d.description && text != "" {
		view.Description = quote(text)
	}
	if d.examples {
		view.Examples = quoteAll(cleanAll(a.Examples, maxExamples, maxUtterance))
	}
	if d.notFor {
		view.NotFor = quoteAll(cleanAll(a.NotFor, maxNotFor, maxUtterance))
	}
	return view
}

// list renders names and says how many it left out.
func (d detail) list(names []string) (literal, int) {
	shown := names
	if d.names > 0 {
		shown = names[:min(len(names), d.names)]
	}
	return quoteAll(shown), len(names) - len(shown)
}

package prompts

// Agent is one agent in the router prompt. Names are shown exactly, because a
// reply must repeat them. Other texts are cleaned and truncated.
type Agent struct {
	ID               string
	Intents, Domains []string
	Description      string
	Examples, NotFor []string // best first; only the first few are shown
}

// Limits of the summary, per agent and in total.
const (
	maxDescription = 200 // characters
	maxUtterance   = 120 // characters of an example or not_for text
	maxExamples    = 3
	maxNotFor      = 2

	maxSummary   = 32 << 10 // bytes
	minLineBytes = len("- \"\": intents {\"\"}; domains {}\n")
)

// detailLevel selects how much the summary shows of each agent.
type detailLevel struct {
	examples, description, notFor bool
	names                         int // maximum intents, and domains, of an agent; 0 = all
}

// detailLevels are tried in order until the summary is small enough. The
// not_for texts are dropped last, because they keep wrong agents out.
func detailLevels() []detailLevel {
	return []detailLevel{
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
		ID                            jsonLiteral
		Intents, Domains              jsonLiteral
		MoreIntents, MoreDomains      int // not shown
		Description, Examples, NotFor jsonLiteral
	}
)

// renderSummary renders the agents in at most maxSummary bytes: first with less
// detail, then with fewer agents.
func renderSummary(agents []Agent) string {
	possible := agents[:min(len(agents), maxSummary/minLineBytes)]
	view := registryView{MoreAgents: len(agents) - len(possible)}
	for _, d := range detailLevels() {
		view.Agents = d.viewsOf(possible)
		if text := renderTemplate("registry.txt", view); len(text) <= maxSummary {
			return text
		}
	}
	// Reached only if names are very long. It ends, because a summary without
	// agents fits.
	for {
		view.Agents = view.Agents[:len(view.Agents)/2]
		view.MoreAgents = len(agents) - len(view.Agents)
		if text := renderTemplate("registry.txt", view); len(text) <= maxSummary {
			return text
		}
	}
}

func (d detailLevel) viewsOf(agents []Agent) []agentView {
	views := make([]agentView, len(agents))
	for i := range agents {
		views[i] = d.viewOf(&agents[i])
	}
	return views
}

func (d detailLevel) viewOf(a *Agent) agentView {
	view := agentView{ID: quoteJSON(a.ID)}
	view.Intents, view.MoreIntents = d.nameList(a.Intents)
	view.Domains, view.MoreDomains = d.nameList(a.Domains)
	if text := cleanText(a.Description, maxDescription); d.description && text != "" {
		view.Description = quoteJSON(text)
	}
	if d.examples {
		view.Examples = quoteAll(cleanTexts(a.Examples, maxExamples, maxUtterance))
	}
	if d.notFor {
		view.NotFor = quoteAll(cleanTexts(a.NotFor, maxNotFor, maxUtterance))
	}
	return view
}

// nameList renders names, and returns how many were left out.
func (d detailLevel) nameList(names []string) (jsonLiteral, int) {
	shown := names
	if d.names > 0 {
		shown = names[:min(len(names), d.names)]
	}
	return quoteAll(shown), len(names) - len(shown)
}

package prompts

import (
	"embed"
	"strings"
	"text/template"

	"github.com/caprouter/caprouter/contract"
)

// Versions of the prompts. They are part of cache keys, cassettes and reports.
// If you change a word of a template, change its version.
const (
	RouterVersion = "router/1" // also of the repair prompt
	AnswerVersion = "answer/1"
)

// Limits of what a prompt shows.
const (
	maxTurns   = 16
	maxTurn    = 2000 // characters of an earlier message
	maxProblem = 500  // characters of a reply's flaw
	maxTag     = 64   // a language or a locale
)

// Messages is a rendered prompt. System contains only text of the template.
type Messages struct{ System, User string }

// RouterData is the data of the router prompt: a request and the agents that
// could serve it.
type RouterData struct {
	Agents  []Agent // in the order they are shown
	Prompt  string
	History []contract.Turn // oldest first; the last 16 are shown
	Locale  string          // BCP 47; "" = unknown
}

// Render renders the router prompt.
func (r *RouterData) Render() Messages {
	return Messages{System: renderTemplate("router.system.txt", nil), User: renderTemplate("router.user.txt", r.templateView())}
}

// RenderRepair renders the repair prompt after an invalid reply: the router
// prompt, the reply and its flaw.
func RenderRepair(r *RouterData, reply, problem string) Messages {
	return r.Render().RepairReply(reply, problem)
}

// AnswerData is the data of the direct answer prompt.
type AnswerData struct {
	Prompt    string
	History   []contract.Turn // oldest first; the last 16 are shown
	Language  string          // BCP 47; "" = the language of the request
	MaxTokens int
}

// Render renders the direct answer prompt.
func (a *AnswerData) Render() Messages {
	view := answerView{Prompt: quoteJSON(a.Prompt), History: historyViews(a.History), Words: max(minWords, a.MaxTokens/tokensPerWord)}
	if a.Language != "" {
		view.Language = quoteJSON(truncateRunes(a.Language, maxTag))
	}
	return Messages{System: renderTemplate("answer.system.txt", nil), User: renderTemplate("answer.user.txt", view)}
}

// Models count words better than tokens. Two tokens per word suffice in most
// languages. The minimum is about one sentence.
const (
	tokensPerWord = 2
	minWords      = 20
)

// Template data: only literals, numbers and the summary, which is rendered from
// literals.
type (
	routerView struct {
		Registry string
		Locale   jsonLiteral
		History  []turnView
		Prompt   jsonLiteral
	}
	repairView struct{ Reply, Problem jsonLiteral }
	answerView struct {
		Language jsonLiteral
		History  []turnView
		Prompt   jsonLiteral
		Words    int
	}
	turnView struct{ Role, Content jsonLiteral }
)

func (r *RouterData) templateView() routerView {
	view := routerView{Registry: renderSummary(r.Agents), History: historyViews(r.History), Prompt: quoteJSON(r.Prompt)}
	if r.Locale != "" {
		view.Locale = quoteJSON(truncateRunes(r.Locale, maxTag))
	}
	return view
}

func historyViews(history []contract.Turn) []turnView {
	history = history[max(0, len(history)-maxTurns):]
	views := make([]turnView, len(history))
	for i, t := range history {
		views[i] = turnView{quoteJSON(truncateRunes(t.Role, maxTag)), quoteJSON(truncateRunes(t.Content, maxTurn))}
	}
	return views
}

//go:embed templates/*.txt
var templateFiles embed.FS

// The registry summary contains braces, so actions have brackets.
var templates = template.Must(template.New("").Delims("[[", "]]").ParseFS(templateFiles, "templates/*.txt"))

// renderTemplate renders an embedded template without its final newline. It
// panics on an error, which only a template that does not fit its data could
// cause.
func renderTemplate(name string, view any) string {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name, view); err != nil {
		panic("prompts: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

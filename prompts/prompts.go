package prompts

import (
	"embed"
	"strings"
	"text/template"

	"github.com/caprouter/caprouter/contract"
)

// Versions of the prompts. A reply is understood, cached and compared by the
// prompt it answers: whoever changes a word of a template changes its version.
const (
	RouterVersion = "router/1" // and of its repair
	AnswerVersion = "answer/1"
)

// What a prompt shows of things that may be long.
const (
	maxTurns   = 16
	maxTurn    = 2000 // characters of an earlier message
	maxProblem = 500  // characters of what is wrong with a reply
	maxTag     = 64   // a language or a locale
)

// Messages is a rendered prompt. System holds our words only.
type Messages struct{ System, User string }

// RouterData is what the router's prompt shows: a request and who could serve it.
type RouterData struct {
	Agents  []Agent // in the order they are shown
	Prompt  string
	History []contract.Turn // oldest first; the last 16 are shown
	Locale  string          // BCP 47; "" = not known
}

// Render renders the router's prompt.
func (r *RouterData) Render() Messages {
	return Messages{System: execute("router.system.txt", nil), User: execute("router.user.txt", r.view())}
}

// RenderRepair renders the prompt that asks once more, after a reply that was not
// accepted: the same again, the reply, and what is wrong with it.
func RenderRepair(r *RouterData, reply, problem string) Messages {
	text := r.Render()
	text.User += execute("repair.txt", repairView{quote(clipBytes(reply, contract.MaxReplyExcerpt)), quote(clip(problem, maxProblem))})
	return text
}

// AnswerData is what the prompt of a direct answer shows.
type AnswerData struct {
	Prompt    string
	History   []contract.Turn // oldest first; the last 16 are shown
	Language  string          // BCP 47; "" = that of the request
	MaxTokens int
}

// Render renders the prompt of a direct answer.
func (a *AnswerData) Render() Messages {
	view := answerView{Prompt: quote(a.Prompt), History: turns(a.History), Words: max(minWords, a.MaxTokens/tokensPerWord)}
	if a.Language != "" {
		view.Language = quote(clip(a.Language, maxTag))
	}
	return Messages{System: execute("answer.system.txt", nil), User: execute("answer.user.txt", view)}
}

// A model counts words better than tokens. Two tokens a word leave room in most
// languages, and a limit below a sentence would be none.
const (
	tokensPerWord = 2
	minWords      = 20
)

// What the templates see: literals and numbers, and the summary, which is
// rendered from nothing else.
type (
	routerView struct {
		Registry string
		Locale   literal
		History  []turnView
		Prompt   literal
	}
	repairView struct{ Reply, Problem literal }
	answerView struct {
		Language literal
		History  []turnView
		Prompt   literal
		Words    int
	}
	turnView struct{ Role, Content literal }
)

func (r *RouterData) view() routerView {
	view := routerView{Registry: summary(r.Agents), History: turns(r.History), Prompt: quote(r.Prompt)}
	if r.Locale != "" {
		view.Locale = quote(clip(r.Locale, maxTag))
	}
	return view
}

func turns(history []contract.Turn) []turnView {
	history = history[max(0, len(history)-maxTurns):]
	views := make([]turnView, len(history))
	for i, t := range history {
		views[i] = turnView{quote(clip(t.Role, maxTag)), quote(clip(t.Content, maxTurn))}
	}
	return views
}

//go:embed templates/*.txt
var templateFiles embed.FS

// Braces are the registry summary's own, so actions have brackets.
var templates = template.Must(template.New("").Delims("[[", "]]").ParseFS(templateFiles, "templates/*.txt"))

// execute renders an embedded template, without the newline its file ends in.
// It fails for no data: the views have the fields the templates name, and a
// strings.Builder takes everything.
func execute(name string, view any) string {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name, view); err != nil {
		panic("prompts: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

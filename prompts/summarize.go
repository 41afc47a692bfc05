package prompts

// SummarizeVersion is the version of the prompt of summaries; see RouterVersion.
const SummarizeVersion = "summarize/1"

// Limits of the prompt of summaries.
const (
	maxResults    = 20
	maxResultText = 8000 // characters of a result
	maxTitle      = 500  // characters
)

// SummarizeData is the data of the prompt that combines the results of several agents.
type SummarizeData struct {
	Prompt    string
	Language  string // BCP 47; "" = the language of the request
	Results   []AgentResult
	Omitted   []string // titles of the subtasks that no agent got
	MaxTokens int
}

// AgentResult is the text of one agent.
type AgentResult struct{ Title, Agent, Status, Text string }

// Render renders the prompt.
func (s *SummarizeData) Render() Messages {
	view := summarizeView{Prompt: quoteJSON(s.Prompt), Words: max(minWords, s.MaxTokens/tokensPerWord)}
	if s.Language != "" {
		view.Language = quoteJSON(truncateRunes(s.Language, maxTag))
	}
	for _, r := range s.Results[:min(len(s.Results), maxResults)] {
		view.Results = append(view.Results, resultView{
			quoteJSON(truncateRunes(r.Title, maxTitle)), quoteJSON(truncateRunes(r.Agent, maxTag)), quoteJSON(truncateRunes(r.Status, maxTag)),
			quoteJSON(truncateRunes(r.Text, maxResultText)),
		})
	}
	for _, title := range s.Omitted[:min(len(s.Omitted), maxResults)] {
		view.Omitted = append(view.Omitted, quoteJSON(truncateRunes(title, maxTitle)))
	}
	return Messages{System: renderTemplate("summarize.system.txt", nil), User: renderTemplate("summarize.user.txt", view)}
}

// Template data of summaries.
type (
	summarizeView struct {
		Prompt, Language jsonLiteral
		Results          []resultView
		Omitted          []jsonLiteral
		Words            int
	}
	resultView struct{ Title, Agent, Status, Text jsonLiteral }
)

package classifier

import (
	"math"
	"slices"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/email"
	"github.com/caprouter/caprouter/internal/lexical"
)

// Reasons of a classification without a model call. If a call failed, the
// reason is one of package llm.
const (
	ReasonEmptyRegistry = "empty_registry" // the registry has no agents
	ReasonTooManyParts  = "too_many_parts" // the prompt contains more than contract.MaxSubtasks requests
	ReasonFollowUp      = "follow_up"      // the prompt continues the previous request of the session
)

func (in *Input) hasNoAgents() bool { return in.Catalogue == nil || len(in.Catalogue.Agents) == 0 }

// ClassifyLexically classifies with the lexical model alone. It is deterministic.
func ClassifyLexically(in *Input) contract.Classification {
	if in.hasNoAgents() || in.Lexical == nil {
		return contract.Classification{
			Intent: contract.Unknown, Domains: []string{}, Subtasks: []contract.Subtask{},
			Source: contract.SourceLexical, Reason: ReasonEmptyRegistry,
		}
	}
	own := classifyPrompt(in)
	if continuesPrevious(in, &own) {
		return newFollowUp(in, &own)
	}
	return own
}

// classifyPrompt classifies the prompt without the previous request.
func classifyPrompt(in *Input) contract.Classification {
	m := email.Parse(in.Prompt)
	return classifyMail(in, &m)
}

// classifyText classifies a text that may contain several requests.
func classifyText(in *Input, text string) contract.Classification {
	prompt := in.Lexical.NewText(text)
	whole := *prompt.Classify(text)
	switch parts := splitPrompt(prompt, &whole); len(parts) {
	case 0:
		acceptTogether(&whole, in.Catalogue.Routing.AmbiguityThreshold)
		if prompt.IsOneClause() {
			offerRival(&whole, in.Lexical.FindRival(text, &whole))
		}
	case 1:
		whole.Intent, whole.Confidence, whole.Alternatives = parts[0].intent, parts[0].confidence, parts[0].runnersUp
		clf := newClassification(in.Lexical, &whole)
		clf.Domains, clf.DomainOrigins = orUnknownDomain(parts[0].domains, parts[0].intent), parts[0].origins
		return clf
	default:
		return combineParts(parts)
	}
	return newClassification(in.Lexical, &whole)
}

// classifyWhole classifies a text as one request.
func classifyWhole(in *Input, text string) contract.Classification {
	whole := in.Lexical.Classify(text)
	acceptTogether(&whole, in.Catalogue.Routing.AmbiguityThreshold)
	return newClassification(in.Lexical, &whole)
}

// newClassification returns the classification of a text that is one request.
func newClassification(m *lexical.Model, whole *lexical.Prediction) contract.Classification {
	return contract.Classification{
		Intent:        whole.Intent,
		Domains:       orUnknownDomain(whole.Domains, whole.Intent),
		Subtasks:      []contract.Subtask{},
		Confidence:    whole.Confidence,
		DomainOrigins: lexicalOrigins(whole),
		Source:        contract.SourceLexical,
		Alternatives:  whole.Alternatives,

		RequiredConfidence: requiredConfidence(m, whole),
	}
}

// requiredConfidence returns the confidence from which the model accepts an intent, if that alone
// is why it has accepted none: the confidence reaches the default minimum. Otherwise it returns 0.
func requiredConfidence(m *lexical.Model, p *lexical.Prediction) float64 {
	if p.Intent == contract.Unknown && p.JointConfidence >= lexical.MinActionConfidence && p.JointConfidence < m.RejectThreshold() {
		return math.Ceil(m.RejectThreshold()*1e4) / 1e4
	}
	return 0
}

// minReading is the least confidence of a reading for a question to the caller: less
// likely ones are mostly requests that no agent serves.
const minReading = 0.3

// acceptTogether names the likeliest intent of a prediction that is unsure only of
// which of several near intents is meant: together they are confident enough to act
// on. The plan then leaves the choice to their agent, or to the caller.
func acceptTogether(p *lexical.Prediction, ambiguityThreshold float64) {
	if p.Intent != contract.Unknown || p.LabelOnly || p.Confidence < minReading || len(p.Alternatives) < 2 {
		return
	}
	together, near := 0.0, 0
	for _, reading := range p.Alternatives {
		if p.Confidence-reading.Confidence >= ambiguityThreshold {
			break
		}
		together += reading.Confidence
		near++
	}
	if near >= 2 && together >= lexical.MinActionConfidence {
		p.Intent, p.Alternatives = p.BestIntent, p.Alternatives[1:]
	}
}

// offerRival makes an intent of other agents as likely as the predicted one, so that a caller
// that may use both is asked. It does nothing if the rival is "".
func offerRival(p *lexical.Prediction, rival string) {
	if rival == "" || p.Intent == contract.Unknown {
		return
	}
	others := slices.DeleteFunc(p.Alternatives, func(a contract.IntentScore) bool { return a.Intent == rival || a.Confidence < minReading })
	p.Alternatives = append([]contract.IntentScore{{Intent: rival, Confidence: p.Confidence}}, others...)
}

// lexicalOrigins returns the origins of the domains of a prediction.
func lexicalOrigins(p *lexical.Prediction) []contract.DomainOrigin {
	origins := originsOf(p.Domains, p.DomainOrigin)
	for i := range origins {
		origins[i].Text = p.DomainTexts[i]
	}
	return origins
}

// orUnknownDomain returns contract.Unknown if a known intent has no domain. It
// matches only a declared "*".
func orUnknownDomain(domains []string, intent string) []string {
	if len(domains) == 0 && intent != contract.Unknown {
		return []string{contract.Unknown}
	}
	return domains
}

// BuildCorpus collects the training data of a registry. If several agents serve
// an intent, it has the examples, keywords, descriptions and domains of all.
// Reserved names ("*", unknown) are not labels. As a declared domain "*" stays,
// because an intent with it does not imply a domain.
func BuildCorpus(s *capabilities.Catalogue) lexical.Corpus {
	var c lexical.Corpus
	at := make(map[string]int, len(s.Intents))
	for _, agent := range s.Learned {
		for _, intent := range agent.Match.Intent {
			if isReserved(intent) {
				continue
			}
			i, ok := at[intent]
			if !ok {
				i = len(c.Intents)
				at[intent] = i
				c.Intents = append(c.Intents, lexical.IntentDoc{Name: intent})
			}
			d := &c.Intents[i]
			d.Examples = append(d.Examples, agent.Examples[intent]...)
			d.Keywords = append(d.Keywords, agent.Keywords...)
			d.Agents = append(d.Agents, agent.ID)
			if agent.Description != "" {
				d.Descriptions = append(d.Descriptions, agent.Description)
			}
			d.NotFor = append(d.NotFor, agent.NotFor...)
			d.Domains = append(d.Domains, agent.Match.Domains...)
		}
	}
	for _, domain := range s.Domains {
		if !isReserved(domain) {
			c.Domains = append(c.Domains, domain)
		}
	}
	c.Aliases = s.DomainAliases
	return c
}

func isReserved(label string) bool { return label == contract.AnyDomain || label == contract.Unknown }

package classifier_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

// sourceRegistry declares names only.
func sourceRegistry() *capabilities.Catalogue {
	return snapshot(
		&contract.RegistryEntry{ID: "billing_agent", Match: contract.Match{
			Intent: []string{"cost_analysis"}, Domains: []string{"azure", "databricks"},
		}},
		&contract.RegistryEntry{ID: "quality_agent", Match: contract.Match{
			Intent: []string{"code_review", "databricks_review", "serverless_review"}, Domains: []string{"python", "databricks", "semaforo"},
		}},
		&contract.RegistryEntry{ID: "rag_agent", Match: contract.Match{
			Intent: []string{"retrieval_qa", "doc_answering"}, Domains: []string{"kb_internal", "docs"},
		}},
	)
}

// exampleRegistry is sourceRegistry with examples in four languages and
// keywords.
func exampleRegistry() *capabilities.Catalogue {
	s := sourceRegistry()
	s.Agent("billing_agent").Examples = map[string][]string{
		"cost_analysis": {"why did our cloud bill go up", "analise o custo", "analiza el gasto de la nube", "分析成本"},
	}
	s.Agent("billing_agent").Keywords = []string{"invoice"}
	s.Agent("quality_agent").Examples = map[string][]string{
		"code_review":       {"review my pull request", "revise este código", "revisa este código", "审查代码"},
		"databricks_review": {"look over my spark job", "revise este notebook databricks", "revisa este cuaderno de databricks"},
	}
	s.Agent("rag_agent").Examples = map[string][]string{
		"doc_answering": {"what do the docs say about retries", "o que diz a documentação", "qué dice la documentación"},
	}
	return s
}

func snapshot(agents ...*contract.RegistryEntry) *capabilities.Catalogue {
	s := &capabilities.Catalogue{Agents: agents, Learned: agents, Routing: capabilities.DefaultRouting()}
	for _, a := range agents {
		s.Intents = append(s.Intents, a.Match.Intent...)
		s.Domains = append(s.Domains, a.Match.Domains...)
	}
	for _, list := range []*[]string{&s.Intents, &s.Domains} {
		slices.Sort(*list)
		*list = slices.DeleteFunc(slices.Compact(*list), func(name string) bool { return name == contract.AnyDomain })
	}
	return s
}

// newClassifier returns a classifier whose clock advances by 1.5 ms per call.
func newClassifier(t testing.TB) *classifier.Classifier {
	t.Helper()
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	c, err := classifier.New(classifier.Config{Now: func() time.Time {
		now = now.Add(1500 * time.Microsecond)
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func input(s *capabilities.Catalogue, prompt string) classifier.Input {
	return classifier.Input{Prompt: prompt, Catalogue: s, Lexical: lexical.Train(classifier.BuildCorpus(s))}
}

// render formats a classification: "intent confidence [domains]", then "|
// title: intent [domains]" for each subtask.
func render(clf *contract.Classification) string {
	var b strings.Builder
	line := func(lead, intent string, domains []string) {
		b.WriteString(lead + intent + " [" + strings.Join(domains, " ") + "]\n")
	}
	line("", clf.Intent, clf.Domains)
	for _, s := range clf.Subtasks {
		line("| "+s.Title+": ", s.Intent, s.Domains)
	}
	return b.String()
}

package lexical

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

// domainCorpus has an agent for reviews, one for costs, and two for deployments.
func domainCorpus() Corpus {
	return Corpus{
		Domains: []string{"azure", "databricks", "kb_internal", "python"},
		Aliases: map[string][]string{"databricks": {"spark", "delta lake"}, "python": {"spark", "pandas"}, "gone": {"ghost"}},
		Intents: []IntentDoc{
			{
				Name: "code_review", Agents: []string{"quality"}, Domains: []string{"databricks", "python"},
				Examples: []string{"review this python script", "check the script for python errors", "review my pull request"},
			},
			{
				Name: "databricks_review", Agents: []string{"quality"}, Domains: []string{"databricks", "python"},
				Examples: []string{"review this notebook", "why is the notebook slow"},
			},
			{
				Name: "cost_analysis", Agents: []string{"billing"}, Domains: []string{"azure", "databricks"},
				Examples: []string{"why did the azure invoice go up", "explain the azure invoice", "analyse the databricks spend", "do a cost analysis"},
			},
			{
				Name: "deploy_job", Agents: []string{"left", "right"}, Domains: []string{"azure", "databricks"},
				Examples: []string{"deploy the function to azure", "deploy my azure function", "deploy the pipeline"},
			},
		},
	}
}

func TestClassify_ProposesDomains(t *testing.T) {
	m := Train(domainCorpus())
	tests := []struct{ text, want string }{
		{"review this python script", "python named"},
		{"review this python code on spark", "python named"},
		{"review my pandas code review", "python alias pandas"},
		{"code review of my spark job", "databricks alias spark, python alias spark"},
		{"code review of the delta lake", "databricks alias delta lake"},
		{"code review of the lake", "python learned"},
		{"code review of kb internal", "kb_internal named"},
		{"review this notebook", "databricks learned"},
		{"do a cost analysis of the invoice", "azure learned"},
		{"do a cost analysis", ""},                                 // its examples name two domains
		{"deploy the pipeline", ""},                                // the examples do not decide between agents
		{"deploy the pipeline with the function", "azure learned"}, // one word decides
		{"deploy the notebook pipeline and function", ""},          // the words disagree
		{"ghost code review", "python learned"},
		{"tell me a joke about the weather", ""},
		{"", ""},
	}
	for _, tt := range tests {
		p := m.Classify(tt.text)
		var got strings.Builder
		for i, d := range p.Domains {
			if i > 0 {
				got.WriteString(", ")
			}
			got.WriteString(d + " " + string(p.DomainOrigin))
			if p.DomainTexts[i] != "" {
				got.WriteString(" " + p.DomainTexts[i])
			}
		}
		if got.String() != tt.want {
			t.Errorf("%q (%s): got domains %q, want %q", tt.text, p.Intent, got.String(), tt.want)
		}
		if p.Domains == nil {
			t.Errorf("%q: got nil, want an empty list", tt.text)
		}
	}
	r := m.analyzeText("review this notebook") // no pool, which drops values under the race detector
	if n := testing.AllocsPerRun(100, func() {
		var p Prediction
		r.analyze("review this notebook")
		r.proposeDomains(&p)
		r.predictIntent(&p)
		r.applyLearnedDomain(&p)
	}); n > 2 {
		t.Errorf("got %v allocations for a learned domain, want at most 2", n)
	}
}

// A domain whose name is a stop word is named only by a word that is written as a name.
func TestClassify_DomainNamedLikeStopWord(t *testing.T) {
	m := Train(Corpus{
		Domains: []string{"building", "it", "about_us", "r"},
		Aliases: map[string][]string{"building": {"house"}, "it": {"it support", "us"}},
		Intents: []IntentDoc{
			{Name: "report_repair", Agents: []string{"a", "b"}, Domains: []string{"building", "it"}, Examples: []string{"the door is broken", "my laptop does not start"}},
			{Name: "show_page", Agents: []string{"c"}, Domains: []string{"about_us", "r"}, Examples: []string{"show the page"}},
		},
	})
	tests := []struct{ text, want string }{
		{"the door is broken, please repair it", ""},
		{"the door is broken. It is urgent", ""},
		{"THE DOOR IS BROKEN, PLEASE REPAIR IT", ""},
		{"the door is broken. REPAIR IT NOW", ""},
		{"IT'S BROKEN AGAIN", ""},
		{"it is broken in the building", "building named"},
		{"repair it in the house", "building alias"},
		{"call IT, the door is broken", "it named"},
		{"IT has to repair my laptop", "it named"},
		{"IT部门", "it named"},
		{"it", "it named"},
		{"it_laptop is broken", "it named"},
		{"ask support to repair it", "it alias"},
		{"repair it for us", ""},
		{"repair the laptop in the US", "it alias"},
		{"tell us about the laptop", ""},
		{"show about_us", "about_us named"},
		{"what r the pages", ""},
		{"show the page of R", "r named"},
	}
	for _, tt := range tests {
		p := m.Classify(tt.text)
		got := strings.Join(p.Domains, " ")
		if p.DomainOrigin == contract.DomainLearned {
			got = ""
		}
		if got != "" {
			got += " " + string(p.DomainOrigin)
		}
		if got != tt.want {
			t.Errorf("%q: got domains %q, want %q", tt.text, got, tt.want)
		}
	}
	if p := m.Classify("repair it"); p.BareDomain || p.DomainOnly {
		t.Errorf("got %+v for a stop word, want no name of a domain", p)
	}
}

func TestIsStopName(t *testing.T) {
	for name, want := range map[string]bool{"it": true, "IT": true, "about_us": true, "aboutUs": true, "não": true, "it_support": false, "azure": false, "法律": false, "": false} {
		if got := IsStopName(name); got != want {
			t.Errorf("%q: got %t, want %t", name, got, want)
		}
	}
}

// A prediction does not depend on the order of the corpus, and proposes only domains of the corpus.
func TestClassify_ProposesSameDomainsForAnyOrder(t *testing.T) {
	c := domainCorpus()
	m := Train(c)
	for i, j := 0, len(c.Intents)-1; i < j; i, j = i+1, j-1 {
		c.Intents[i], c.Intents[j] = c.Intents[j], c.Intents[i]
	}
	c.Domains = []string{"python", "kb_internal", "databricks", "azure"}
	reversed := Train(c)
	for _, text := range []string{"code review of my spark job", "review this notebook", "do a cost analysis of the invoice", "deploy my function"} {
		a, b := m.Classify(text), reversed.Classify(text)
		if fmt.Sprint(a.Domains, a.DomainOrigin, a.DomainTexts) != fmt.Sprint(b.Domains, b.DomainOrigin, b.DomainTexts) {
			t.Errorf("%q: got %v and %v", text, a, b)
		}
		if len(a.Domains) > contract.MaxDomains {
			t.Errorf("%q: got %d domains", text, len(a.Domains))
		}
	}
}

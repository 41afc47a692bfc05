package classifier_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
)

// TestClassify_SourceRegistry classifies with a registry file that contains labels only.
func TestClassify_SourceRegistry(t *testing.T) {
	const file = "../capabilities/testdata/source.yaml"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := capabilities.Parse(file, data)
	if err != nil {
		t.Fatal(err)
	}
	for prompt, want := range map[string]string{
		"Please do a code review of this python module": "code_review [python]\n",
		"review this python code":                       "code_review [python]\n",
		"Answer from the docs: how do retries work?":    "doc_answering [docs]\n",
		"retrieval QA over kb_internal":                 "retrieval_qa [kb_internal]\n",
		"Analyze the cost of our azure subscription":    "cost_analysis [azure]\n",
		"Databricks review, please":                     "databricks_review [databricks]\n",
		"tell me a joke":                                "unknown []\n",
	} {
		got := newClassifier(t).Classify(t.Context(), input(s.Catalogue, prompt))
		if diff := cmp.Diff(want, render(&got)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", prompt, diff)
		}
	}
}

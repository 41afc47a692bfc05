package classifier_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/testkit"
)

// TestReply_JSONTestSuite uses the files of the JSONTestSuite as replies: as the whole reply, as
// subtasks, and as an additional member. All are rejected, and the lexical result is used.
func TestReply_JSONTestSuite(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(testkit.Shared(t, "corpora", "JSONTestSuite", "test_parsing"), "*.json"))
	if err != nil || len(names) < 300 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	s := exampleRegistry()
	in := input(s, "review this python code")
	empty := map[string]bool{"y_array_empty.json": true, "y_structure_whitespace_array.json": true} // an empty array means no subtasks
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		member := `{"intent":"code_review","domains":["python"],"confidence":0.9,"subtasks":`
		for place, reply := range []string{string(data), member + string(data) + "}", member + `[],"x":` + string(data) + "}"} {
			m := &fakeModel{do: replySequence(llm.Reply{Text: reply})}
			c, err := classifier.New(classifier.Config{Model: m})
			if err != nil {
				t.Fatal(err)
			}
			clf := c.Classify(t.Context(), in)
			c.Close()
			checkReply(t, s, &clf)
			if taken := clf.Source == contract.SourceLLM; taken != (place == 1 && empty[filepath.Base(name)]) {
				t.Errorf("%s: got %.200q accepted as a classification: %t", filepath.Base(name), reply, taken)
			}
		}
	}
	t.Logf("%d files in three places each", len(names))
}

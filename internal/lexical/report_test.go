package lexical

import "testing"

func TestReport(t *testing.T) {
	c := trainedCorpus()
	r := Train(c).Report()
	docs := mergeIntents(c.Intents)
	if len(r.Intents) != len(docs) || r.Trials != r.Examples {
		t.Fatalf("got %d intents and %d trials of %d examples, want %d intents and one trial an example", len(r.Intents), r.Trials, r.Examples, len(docs))
	}
	if r.Accuracy < 0.5 || r.Accuracy > 1 {
		t.Errorf("got accuracy %v, want 0.5 to 1", r.Accuracy)
	}
	trials, wrong := 0, 0
	for i, of := range r.Intents {
		trials += of.Trials
		if of.Intent != docs[i].Name || of.Examples != len(sortedUnique(docs[i].Examples)) || of.Accuracy < 0 || of.Accuracy > 1 {
			t.Errorf("got %+v of %s", of, docs[i].Name)
		}
	}
	for _, c := range r.Confusions {
		wrong += c.Count
		if c.Intent == c.Got {
			t.Errorf("got %+v, want two different intents", c)
		}
	}
	if got := float64(trials-wrong) / float64(trials); trials != r.Trials || got < r.Accuracy-0.001 || got > r.Accuracy+0.001 {
		t.Errorf("got %d trials and %d confusions, want accuracy %v of %d", trials, wrong, r.Accuracy, r.Trials)
	}
	if r := Train(Corpus{}).Report(); r.Examples != 0 || len(r.Intents) != 0 || r.Accuracy != 0 {
		t.Errorf("got %+v of an empty corpus, want nothing", r)
	}
}

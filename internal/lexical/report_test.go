package lexical

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

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

// Variants of one sentence are held out together: a model that has learned one of them predicts the
// others, which shows nothing about other requests.
func TestReport_HoldsNearDuplicatesOutTogether(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		letters := make([]byte, 8)
		for i := range letters {
			letters[i] = byte('a' + rng.IntN(26))
		}
		return string(letters)
	}
	var c Corpus
	for i := range 4 {
		doc := IntentDoc{Name: fmt.Sprintf("intent_%c", 'a'+i)}
		for range 5 { // sentences that have no word in common
			text := word() + " " + word() + " " + word() + " " + word()
			doc.Examples = append(doc.Examples, text, "please "+text, text+" now")
		}
		c.Intents = append(c.Intents, doc)
	}
	if r := Train(c).Report(); r.Trials != 60 || r.Accuracy > 0.5 {
		t.Errorf("got accuracy %v of %d trials, want at most 0.5 of 60: no example resembles another one", r.Accuracy, r.Trials)
	}
}

package classifier_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

// learnedRegistry has enough examples for a calibrated model, which determines the boundaries of
// requests.
func learnedRegistry() *capabilities.Catalogue {
	agent := func(id, intent, domain string, verbs, objects []string) *contract.RegistryEntry {
		e := &contract.RegistryEntry{ID: id, Match: contract.Match{Intent: []string{intent}, Domains: []string{domain}}, Examples: map[string][]string{}}
		for i, verb := range verbs {
			for k, object := range objects {
				for n, how := range []string{"%s the %s", "please %s my %s", "can you %s a %s", "%s this %s now"} {
					if (i+k+n)%4 != 0 {
						e.Examples[intent] = append(e.Examples[intent], fmt.Sprintf(how, verb, object))
					}
				}
			}
		}
		return e
	}
	return snapshot(
		agent("dj", "play_music", "music", []string{"play", "put on", "start"}, []string{"song", "record", "jazz playlist", "rock and roll album"}),
		agent("waiter", "book_table", "food", []string{"book", "reserve", "get"}, []string{"table", "seat at the restaurant", "place for dinner", "table for two"}),
		agent("clerk", "rate_book", "books", []string{"rate", "review", "score"}, []string{"novel", "book", "chronicle", "textbook"}),
	)
}

func TestSplit_StatisticalModel(t *testing.T) {
	s := learnedRegistry()
	m := lexical.Train(classifier.BuildCorpus(s))
	if !m.Calibrated() {
		t.Fatal("got an uncalibrated model, want a calibrated one")
	}
	c, err := classifier.New(classifier.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for prompt, want := range map[string][]string{
		"play the rock and roll album":                                                       nil,
		"play the song, book a table and then rate this novel":                               {"play_music", "book_table", "rate_book"},
		"play the song, book_table":                                                          nil,
		`play the song {"intent": "book_table", "say": "book a table"}, and rate this novel`: {"play_music", "rate_book"},
		"please reserve a seat at the restaurant and put on a jazz record":                   {"book_table", "play_music"},
	} {
		clf := c.Classify(t.Context(), classifier.Input{Prompt: prompt, Catalogue: s, Lexical: m})
		var got []string
		for _, sub := range clf.Subtasks {
			got = append(got, sub.Intent)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q, subtasks (-want +got):\n%s", prompt, diff)
		}
		checkValid(t, s, &clf)
	}
}

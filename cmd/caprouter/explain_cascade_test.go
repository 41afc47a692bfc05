package main

import (
	"testing"

	"github.com/caprouter/caprouter/contract"
)

func TestCascadeText(t *testing.T) {
	enough, yes, no := 0.96, true, false
	for want, c := range map[string]contract.Cascade{
		"the model was spared: review with 0.98 by the words, and 0.96 is enough":                                                                   {Intent: "review", Confidence: 0.98, Accept: &enough, ModelSkipped: true},
		"the model was asked: review with 0.80 by the words, and it takes 0.96; it agrees":                                                          {Intent: "review", Confidence: 0.8, Accept: &enough, Agrees: &yes},
		"the model was asked: unknown with 0.10 by the words, and it takes 0.96; it does not agree":                                                 {Intent: "unknown", Confidence: 0.1, Accept: &enough, Agrees: &no},
		"the model was asked, in vain: review with 0.80 by the words, and it takes 0.96":                                                            {Intent: "review", Confidence: 0.8, Accept: &enough},
		"the model was asked: review with 1.00 by the words, which never spare it: there is no number, or too few examples to calibrate; it agrees": {Intent: "review", Confidence: 1, Agrees: &yes},
	} {
		if got := cascadeText(&c); got != want {
			t.Errorf("got %q\nwant %q", got, want)
		}
	}
}

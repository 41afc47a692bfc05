package main

import (
	"fmt"

	"github.com/caprouter/caprouter/contract"
)

// cascade is whether the lexical classifier spared the model.
//
//	cascade     the model was spared: code_review with 0.98, and 0.96 is enough
//	cascade     the model was asked: code_review with 0.80, and it takes 0.96; the model agrees
func (p *page) cascade(c *contract.Cascade) {
	if c != nil {
		p.field("cascade", cascadeText(c), none)
	}
}

func cascadeText(c *contract.Cascade) string {
	words := fmt.Sprintf("%s with %.2f by the words", c.Intent, c.Confidence)
	switch {
	case c.ModelSkipped && c.Accept != nil:
		return fmt.Sprintf("the model was spared: %s, and %.2f is enough", words, *c.Accept)
	case c.Accept == nil:
		words += ", which never spare it: there is no number, or too few examples to calibrate"
	default:
		words += fmt.Sprintf(", and it takes %.2f", *c.Accept)
	}
	switch {
	case c.Agrees == nil:
		return "the model was asked, in vain: " + words
	case *c.Agrees:
		return "the model was asked: " + words + "; it agrees"
	}
	return "the model was asked: " + words + "; it does not agree"
}

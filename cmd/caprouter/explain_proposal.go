package main

import (
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// proposal shows what policy C put on record: the ticket, the agent that is
// missing, and what to beware of.
func (p *page) proposal(d *contract.Proposal) {
	if d == nil {
		return
	}
	p.field("proposal", printable(d.Detail), none)
	if d.TicketID != "" {
		p.field("ticket", fmt.Sprintf("%s, %s", d.TicketID, count(d.Count, "request")), none)
	}
	for _, what := range d.Requirements {
		p.field("needed", printable(what), none)
	}
	for _, what := range d.Risks {
		p.field("beware", printable(what), none)
	}
	p.line("suggestion", cell{})
	for line := range strings.SplitSeq(strings.Trim(d.SuggestedYAML, "\n"), "\n") {
		p.raw(answerIndent, printable(line))
	}
}

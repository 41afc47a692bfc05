// Package visibility is the visibility filter: it removes from records, events,
// answers and listings everything that a caller may not see. Each surface that
// returns something to a caller uses it: the router, the stored answers and
// decisions, the REST lists of agents and registry, fallback answers and
// tickets. The package is pure: it takes values and returns values, and never
// changes what it is given.
//
// # The rule
//
// A caller may see an agent if it holds the scope agent:<id> or agent:*, or if
// it holds the scope admin. An admin sees the records of every tenant but may
// not use an agent because of that.
//
// A caller may see a label (an intent or a domain) if an agent that it may see
// declares the label. Other labels are shown as "unknown". If nothing remains
// of a classification, it is shown like the classification of a prompt that was
// not understood, so that guessing reveals neither labels nor agents. Texts
// written by a model may repeat every label in its prompt, so they are replaced
// or removed.
//
// A caller may see a request of its own. It may see a request of another caller
// of its tenant if it may see all agents that worked on it or may still get a
// task. Requests of other tenants do not exist for it. Only the owner of a
// request, or an admin who may submit requests, may cancel or erase it.
//
// # Example
//
//	filter := visibility.NewFilter(snapshot, caller, record.Owner)
//	return filter.Response(record.Response), nil
//
// A record keeps the complete decision; filter it when it is read, never when
// it is written, because another caller may be entitled to more.
package visibility

// Package golden is the regression test of routing (003 §9): cases say what
// shall become of a request, a run routes each of them for real and says what
// did. It owns the format of cases, the running of them, recorded replies of a
// model, reports and what is computed from them. It decides nothing itself:
// every case goes through router.Router as a dry run, over a registry that
// package capabilities loaded, so that nothing is sent to an agent.
//
//	files ──▶ Load ──▶ []Case ──▶ Run ──▶ *Report ──▶ JSON, JUnit, HTML, Compare
//	                                │
//	                                ├─ registry   router.View, as in the server
//	                                ├─ words      the lexical classifier, no model
//	                                └─ model      the case's own script (llm:),
//	                                              a Cassette, or a live one
//
// The smallest file of cases:
//
//	cases:
//	  - id: review-python
//	    input: "Review this python module"
//	    expect: { outcome: dispatch, agents: [quality_agent] }
//
//	names := golden.NamesOf(snapshot)
//	cases, err := golden.Load([]string{"cases.yaml"}, names)
//	report, err := golden.Run(ctx, golden.Config{Registry: snapshot, Cases: cases})
//
// The same cases over the same registry, with no model or with a cassette, give
// the same bytes: a report holds no time, no duration and no random id.
package golden

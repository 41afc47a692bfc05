// Package golden implements regression tests of routing. A case is a request with
// its expected outcome; a run routes each case as a dry run through router.Router,
// so that no agent is called, and reports the differences. The package contains the
// file formats of cases, the runner, recorded model replies (cassettes), reports,
// threshold fitting and benchmarks.
//
//	files ─▶ LoadCases ─▶ []Case ─▶ Run ─▶ *Report ─▶ JSON, JUnit, HTML, CompareReports
//	                                 │
//	                                 ├─ registry  router.View, as in the server
//	                                 ├─ lexical   classifier without a model
//	                                 └─ model     replies in the case (llm:),
//	                                              a Cassette, or a live model
//
// The smallest case file:
//
//	cases:
//	  - id: review-python
//	    input: "Review this python module"
//	    expect: { outcome: dispatch, agents: [quality_agent] }
//
//	names := golden.NewDeclaredNames(registry)
//	cases, err := golden.LoadCases([]string{"cases.yaml"}, names)
//	report, err := golden.Run(ctx, golden.Config{Registry: registry, Cases: cases})
//
// Reports are deterministic: without a model or with a cassette, the same cases and
// registry give the same bytes. They contain no times and no random ids.
package golden

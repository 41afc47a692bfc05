// Package orchestrations hosts package orchestrator in the router: it stores the records of
// runs, executes them in the background, and lets callers follow, approve and cancel them.
//
//	POST /orchestrations ─▶ Submit ─▶ record ─▶ orchestrator.Run ─▶ gateway, audit log
//	GET  …, events       ─▶ Get, Follow ◀─ record
//	POST …/approve       ─▶ Approve ─▶ record ─▶ Run, by the process that got the decision
//
// The record is the only truth about a run. Its owner is the process that executes it; a
// run that waits for a person has none, and the process that gets the decision continues
// it. If a process ends, another one takes its runs over. The events of a run are its audit
// trail, so that any process can show them, and a reader can resume after any of them.
package orchestrations

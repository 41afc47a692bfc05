// Package asyncrun executes asynchronous requests in the background: it stores an
// accepted request durably, runs the pipeline for it as soon as a permit is free,
// and resumes it after a restart. Which agents get a request is the pipeline's
// decision, how tasks are sent is internal/execution's, and which changes of a
// stored request are valid is the table in internal/requests.
//
// The states of a run, beside those of the stored request:
//
//	run         stored request   next
//	queued      accepted         permit acquired: classifying
//	classifying accepted         RecordDecision: recording; otherwise RecordOutcome
//	recording   planned          decision in the audit log: executing
//	executing   planned          first task stored: running; all tasks done: RecordOutcome
//	concluding  <terminal>       response in the audit log, index updated: concluded
//	concluded   <terminal>       -
//	handed over any but terminal the process stops; the next one resumes the request
//	given up    <terminal>       the pipeline failed: recorded as failed
//
// A request is taken over by compare-and-set on its owner and epoch. The run of
// the previous owner then fails with requests.ErrNotOwner at its next change, so a
// process that was only presumed dead cannot send further tasks. A resumed run
// starts where the stored request is: with its plan if it is planned, with its
// tasks if it is running.
//
// A graceful shutdown (Close) sends no further tasks, waits until the ones that
// were sent have ended, and hands over the rest.
//
//	runner := asyncrun.New(cfg, pipeline)
//	err := runner.ResumeAll(ctx) // in the background
//	resp, err := runner.Submit(ctx, accepted)
//	runner.Close(ctx)
package asyncrun

package requests

import "github.com/caprouter/caprouter/contract"

// Snapshot is the request as its caller may see it now: the answer or, before
// there is one, how far it has come. It shares what the record holds.
func (r *Record) Snapshot() *contract.Response {
	if r.Response != nil {
		return r.Response
	}
	status, mode := contract.StatusAccepted, contract.DataMode("")
	if r.State == StateRunning {
		status, mode = contract.StatusRunning, contract.DataDispatch
	}
	return &contract.Response{
		RequestID: r.ID,
		TraceID:   r.TraceID,
		Status:    status,
		Decision:  r.Decision,
		Tasks:     r.Reports(),
		Omitted:   r.Omitted,
		Data:      contract.ResponseData{Mode: mode},
	}
}

// Reports says what became of every part that was given out, in part order: of
// the newest task of each, with those before it as failed over.
func (r *Record) Reports() []contract.TaskReport {
	reports := []contract.TaskReport{}
	for part := range r.Parts {
		var report contract.TaskReport
		var failed []contract.FailedAttempt
		for i := range r.Tasks {
			t := &r.Tasks[i]
			if t.Part != part {
				continue
			}
			if report.TaskID != "" {
				failed = append(failed, r.failedTry(&report))
			}
			report = t.report(r.Parts[part].Title)
		}
		if report.TaskID != "" {
			report.FailedOver = failed
			reports = append(reports, report)
		}
	}
	return reports
}

// report is the task as its caller sees it.
func (t *Task) report(title string) contract.TaskReport {
	report := contract.TaskReport{
		TaskID: t.ID, AgentID: t.AgentID, SubtaskTitle: title,
		Attempts: t.Attempts, LatencyMS: t.LatencyMS, Error: t.Err,
	}
	switch {
	case t.State != TaskDone:
		report.Status = contract.TaskRunning
	case t.Result != nil:
		report.Status = contract.TaskStatus(t.Result.Status)
	case t.Err != nil && t.Err.Code == contract.TaskWasCancelled:
		report.Status = contract.TaskCancelled
	default:
		report.Status = contract.TaskFailed
	}
	return report
}

// failedTry is what stays of a task when another one takes over: the reason, and
// the agent's own words where it gave any.
func (r *Record) failedTry(report *contract.TaskReport) contract.FailedAttempt {
	try := contract.FailedAttempt{
		TaskID: report.TaskID, AgentID: report.AgentID, Status: report.Status,
		Attempts: report.Attempts, LatencyMS: report.LatencyMS, Error: report.Error,
	}
	if t := r.task(report.TaskID); t != nil && t.Result != nil {
		try.Explanations = t.Result.Explanations
	}
	return try
}

package responsejson

import (
	"github.com/caprouter/caprouter/contract"
)

// Append appends a response to dst. An error is one of strictjson.Marshal.
func Append(dst []byte, r *contract.Response) ([]byte, error) {
	e := encoder{out: dst}
	e.response(r)
	return e.out, e.err
}

// AppendDecision appends a decision to dst. An error is one of strictjson.Marshal.
func AppendDecision(dst []byte, d *contract.Decision) ([]byte, error) {
	e := encoder{out: dst}
	e.decision(d)
	return e.out, e.err
}

func (e *encoder) response(r *contract.Response) {
	e.out = append(e.out, '{')
	e.stringMember("request_id", r.RequestID)
	e.stringMember("trace_id", r.TraceID)
	e.stringMember("status", string(r.Status))
	e.name("decision")
	if r.Decision == nil {
		e.out = append(e.out, "null"...)
	} else {
		e.decision(r.Decision)
	}
	arrayMember(e, "tasks", r.Tasks, (*encoder).task)
	arrayMember(e, "omitted", r.Omitted, (*encoder).omitted)
	e.data(&r.Data)
	if len(r.Feedback) > 0 {
		e.valueMember("feedback", r.Feedback)
	}
	e.out = append(e.out, '}')
}

func (e *encoder) task(t *contract.TaskReport) {
	e.out = append(e.out, '{')
	e.stringMember("task_id", t.TaskID)
	e.stringMember("agent_id", t.AgentID)
	e.stringMember("subtask_title", t.SubtaskTitle)
	e.stringMember("status", string(t.Status))
	e.intMember("attempts", t.Attempts)
	e.floatMember("latency_ms", t.LatencyMS)
	e.valueOrNull("error", t.Error == nil, t.Error)
	if len(t.Metrics) > 0 {
		e.floatsMember("metrics", t.Metrics)
	}
	e.optionalStrings("logs", t.Logs)
	if len(t.FailedOver) > 0 {
		e.valueMember("failed_over", t.FailedOver)
	}
	e.out = append(e.out, '}')
}

// valueOrNull appends a rare member that may be null.
func (e *encoder) valueOrNull(name string, null bool, v any) {
	if null {
		e.name(name)
		e.out = append(e.out, "null"...)
		return
	}
	e.valueMember(name, v)
}

func (e *encoder) omitted(o *contract.Omitted) {
	e.out = append(e.out, '{')
	e.intMember("subtask", o.Subtask)
	e.stringMember("title", o.Title)
	e.stringMember("intent", o.Intent)
	e.stringsMember("domains", o.Domains)
	e.stringMember("reason", o.Reason)
	e.out = append(e.out, '}')
}

// data appends the data of a dispatched request. Those of other modes are rare.
func (e *encoder) data(d *contract.ResponseData) {
	if d.Classification != nil || d.Degraded || d.DegradedReason != "" || d.AnsweredBy != nil || d.Question != "" ||
		d.Because != "" || len(d.Options) > 0 || d.Proposal != nil || d.Unsupported != nil {
		e.valueMember("data", d)
		return
	}
	e.name("data")
	e.out = append(e.out, '{')
	e.optionalString("mode", string(d.Mode))
	e.optionalTrue("dry_run", d.DryRun)
	optionalArray(e, "results", d.Results, (*encoder).result)
	e.optionalString("answer", d.Answer)
	e.out = append(e.out, '}')
}

func (e *encoder) result(r *contract.AgentResult) {
	e.out = append(e.out, '{')
	e.stringMember("agent_id", r.AgentID)
	e.optionalString("subtask_title", r.SubtaskTitle)
	e.stringMember("status", string(r.Status))
	e.rawMember("data", r.Data)
	e.optionalStrings("explanations", r.Explanations)
	e.out = append(e.out, '}')
}

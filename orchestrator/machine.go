package orchestrator

import (
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// State is a state of a run. The terminal ones are statuses of contract.Orchestration.
type State string

// States of a run.
const (
	StateInit     State = "INIT"
	StateDiscover State = "DISCOVER"
	StateAuth     State = "AUTH"
	StateDescribe State = "DESCRIBE"
	StatePlan     State = "PLAN"
	StateExecute  State = "EXECUTE"
	StateObserve  State = "OBSERVE"
	StateVerify   State = "VERIFY"
	StateCommit   State = "COMMIT"
	StateDone           = State(contract.OrchestrationDone)
	StateFailed         = State(contract.OrchestrationFailed)
	StateBlocked        = State(contract.OrchestrationBlocked)
	StateDegraded       = State(contract.OrchestrationDegraded)
)

// Terminal reports whether a run has ended.
func (s State) Terminal() bool { return contract.OrchestrationStatus(s).Terminal() }

// Event is what happens in a run.
type Event string

// Events of a run.
const (
	EventAccepted       Event = "goal_accepted"
	EventServersListed  Event = "servers_listed"
	EventNoServers      Event = "no_servers"
	EventAuthOK         Event = "auth_ok"
	EventAuthFailed     Event = "auth_failed"
	EventSchemaLoaded   Event = "tool_schema_loaded"
	EventNoTools        Event = "no_tools"
	EventPlanReady      Event = "plan_ready"
	EventPlanReturned   Event = "plan_returned" // only the plan was asked for
	EventPlanRejected   Event = "plan_rejected" // another one is made
	EventPlanFailed     Event = "plan_failed"
	EventPolicyAllow    Event = "policy_allow"
	EventPolicyBlock    Event = "policy_block"
	EventGateOpened     Event = "gate_opened"
	EventGateApproved   Event = "gate_approved"
	EventGateDenied     Event = "gate_denied"
	EventGateExpired    Event = "gate_expired"
	EventGateUnattended Event = "gate_unattended"
	EventCallStarted    Event = "call_started"
	EventCallRetried    Event = "call_retried"
	EventCallOK         Event = "call_ok"
	EventCallError      Event = "call_error"
	EventCallUnknown    Event = "call_unknown" // the call may have been executed
	EventCallsEnded     Event = "calls_ended"  // all calls that could be made
	EventNextSteps      Event = "next_steps"
	EventStepsDone      Event = "steps_done"
	EventStepsStopped   Event = "steps_stopped" // an output does not meet its criteria
	EventStepsFailed    Event = "steps_failed"
	EventReplan         Event = "replan"
	EventVerifyOK       Event = "verify_ok"
	EventVerifyFailed   Event = "verify_failed"
	EventVerifierError  Event = "verifier_error"
	EventCommitted      Event = "committed"
	EventResumed        Event = "resumed"
	EventCancelled      Event = "cancelled"
	EventTimeout        Event = "timeout"
	EventAborted        Event = "aborted" // the run cannot be continued
)

// transition is a row of the table: an event in a state leads to another one.
type transition struct {
	from  State
	event Event
	to    State
}

// transitions is the table of all runs:
//
//	INIT ─▶ DISCOVER ─▶ AUTH ─▶ DESCRIBE ─▶ PLAN ─▶ EXECUTE ─▶ OBSERVE ─▶ VERIFY ─▶ COMMIT ─▶ DONE
//	           │          │        │         │ ▲ ▲     │  ▲       │ │ │      │ │
//	           │          │        │         │ │ │     │  └───────┘ │ │      │ └─▶ FAILED
//	           ▼          ▼        ▼         ▼ │ │     ▼  next_steps │ ▼      │
//	        DEGRADED   BLOCKED  DEGRADED  DEGRADED │  BLOCKED        │ DEGRADED
//	                                           │ └──── replan ───────┘        │
//	                                           └────── replan ────────────────┘
//
// The calls of steps that do not depend on each other are made between EXECUTE and
// calls_ended. A run that waits for a person stays in EXECUTE. Every state but COMMIT can
// be left by cancelled, timeout and aborted.
func transitions() []transition {
	table := []transition{
		{StateInit, EventAccepted, StateDiscover},
		{StateDiscover, EventServersListed, StateAuth},
		{StateDiscover, EventNoServers, StateDegraded},
		{StateAuth, EventAuthOK, StateDescribe},
		{StateAuth, EventAuthFailed, StateBlocked},
		{StateDescribe, EventSchemaLoaded, StatePlan},
		{StateDescribe, EventNoTools, StateDegraded},
		{StatePlan, EventPlanReady, StateExecute},
		{StatePlan, EventPlanReturned, StateDone},
		{StatePlan, EventPlanRejected, StatePlan},
		{StatePlan, EventPlanFailed, StateDegraded},
		{StateExecute, EventPolicyAllow, StateExecute},
		{StateExecute, EventPolicyBlock, StateBlocked},
		{StateExecute, EventGateOpened, StateExecute},
		{StateExecute, EventGateApproved, StateExecute},
		{StateExecute, EventGateDenied, StateBlocked},
		{StateExecute, EventGateExpired, StateBlocked},
		{StateExecute, EventGateUnattended, StateBlocked},
		{StateExecute, EventCallStarted, StateExecute},
		{StateExecute, EventCallRetried, StateExecute},
		{StateExecute, EventCallOK, StateExecute},
		{StateExecute, EventCallError, StateExecute},
		{StateExecute, EventCallUnknown, StateExecute},
		{StateExecute, EventCallsEnded, StateObserve},
		{StateObserve, EventNextSteps, StateExecute},
		{StateObserve, EventReplan, StatePlan},
		{StateObserve, EventStepsDone, StateVerify},
		{StateObserve, EventStepsStopped, StateVerify},
		{StateObserve, EventStepsFailed, StateDegraded},
		{StateVerify, EventVerifyOK, StateCommit},
		{StateVerify, EventReplan, StatePlan},
		{StateVerify, EventVerifyFailed, StateFailed},
		{StateVerify, EventVerifierError, StateDegraded},
		{StateCommit, EventCommitted, StateDone},
	}
	for _, s := range []State{StateInit, StateDiscover, StateAuth, StateDescribe, StatePlan, StateExecute, StateObserve, StateVerify} {
		table = append(table,
			transition{s, EventCancelled, StateFailed}, transition{s, EventTimeout, StateDegraded}, transition{s, EventAborted, StateDegraded})
	}
	for _, s := range []State{StateInit, StateDiscover, StateAuth, StateDescribe, StatePlan, StateExecute, StateObserve, StateVerify, StateCommit} {
		table = append(table, transition{s, EventResumed, s})
	}
	return table
}

// nextState returns where an event leads to. It is an error if the table has no such row.
func nextState(from State, event Event) (State, error) {
	for _, t := range transitions() {
		if t.from == from && t.event == event {
			return t.to, nil
		}
	}
	return from, fmt.Errorf("event %s is not possible in state %s", event, from)
}

// Diagram returns the table as a Mermaid state diagram, without the events that every
// state has.
func Diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    [*] --> INIT\n")
	for _, t := range transitions() {
		switch t.event {
		case EventCancelled, EventTimeout, EventAborted, EventResumed:
		default:
			fmt.Fprintf(&b, "    %s --> %s: %s\n", t.from, t.to, t.event)
		}
	}
	for _, s := range []State{StateDone, StateFailed, StateBlocked, StateDegraded} {
		fmt.Fprintf(&b, "    %s --> [*]\n", s)
	}
	return b.String()
}

// Package planner makes plans for orchestrations, and verifies their outputs, with a
// language model. It calls no tool.
//
//	PlanRequest ─▶ shortlist of tools ─▶ masking ─▶ prompt ─▶ model ─▶ strict parsing ─▶ Plan
//	                                                  ▲                    │ not valid
//	                                                  └── one repair ◀─────┘
//
// The reply of a model is data: a plan has only the known keys, and every step is judged by
// the policy before it is executed. Personal data and secrets are replaced by placeholders
// before the model sees them, and placeholders in a plan by their values.
//
// [Models] returns the planner and the verifier of a run. A caller may choose another
// endpoint from the operator's list; the operator's key is never sent there.
package planner

// Package orchestrator pursues a goal with the tools of MCP servers: it plans, executes
// and verifies. A run is a Record, which is stored before every call and after every step:
//
//	goal ─▶ Run: ServerRegistry ─▶ Planner ─▶ Enforcer ─▶ Invoker ─▶ Verifier ─▶ result
//	              servers, tools    a plan     allow,      one call   criteria,
//	                                           gate, deny             or a model
//
// The states and events of a run are one table, in machine.go. The package does not know
// where servers, models and records are: each is behind an interface.
//
// A run ends by its plan, its budgets or its deadline. A call that may have been executed
// and must not be repeated ends it as well: the record states before every call that it is
// about to be made, so the next process knows.
package orchestrator

// Package workload generates load for routers in processes of their own, and checks
// that they keep their promises, for the drivers below test/.
//
// [Callers] send requests through [Routers], and [Agents] execute tasks. Both survive
// the routers, and write what they saw into a [Ledger]: accepted requests, executions,
// results. At the end [Ledger.RunChecks] and [Ledger.CheckAudit] compare what was
// promised with the outcome.
package workload

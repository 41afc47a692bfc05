// Package history owns what remains of a request: its decision and its response in
// the audit log, its record if it is asynchronous, and its events. Journal writes
// the audit log for the pipeline. Service returns stored requests to their
// callers, through the visibility filter, and cancels or erases them.
//
//	service := history.New(history.Config{Log: log, Recording: journal, Requests: store, …})
//	resp, err := service.Request(ctx, id, caller)
//
// Each fact has one owner, and a lookup asks them in this order: the record of an
// asynchronous request, this process for a request that it executes, the audit log
// for a request that has ended.
package history

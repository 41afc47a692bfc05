// Package redaction removes sensitive fields from the inputs and results of tools, by
// rules of the operator's file:
//
//	{"path": "/incident/budget_id"}                   the value at a place; * matches one step
//	{"key": "budget_id", "in": ["log"]}               the member with the name, at any depth
//	{"pattern": "BUD-[0-9]+", "replace": "BUD-…"}     the text that matches
//	{"kinds": ["email", "phone"]}                     personal data that package redact finds
//
// A string that contains a JSON object or array is treated like that value, because many
// tools return JSON as text. A value that cannot be examined is replaced as a whole.
package redaction

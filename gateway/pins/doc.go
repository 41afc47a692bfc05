// Package pins remembers the definitions of tools that may be called, so that a server
// cannot change the description or the schemas of a tool unnoticed:
//
//	listed definition ─▶ Check ─┬─ equal to the pin ───────────────▶ may be called
//	                            ├─ no pin, mode first_use ─▶ pinned ▶ may be called
//	                            └─ otherwise ─▶ quarantined until Approve
//
// A pin is the SHA-256 of the canonical definition. [Diff] shows what has changed, and
// [Inspect] reports text that may be written for a model instead of for a reader.
package pins

// Package policy decides whether an orchestration may call a tool: allow, deny, or gate,
// which means that a person must approve the call. It takes values and returns values: it
// reads no clock, no network and, after [Load], no file.
//
//	Call ─▶ traits      what the tool does: name, schema, annotations, transport
//	     ─▶ findings    what this call shows: secrets, destinations, paths, commands, copied outputs
//	     ─▶ rules       of the caller, of the operator's file, of defaults.yaml
//	     ─▶ Verdict{Effect, Rule, Category, Reason}
//
// A tool without annotations is judged by its name, its schema and the arguments. A call
// without a finding is allowed.
//
// # Order of the rules
//
//  1. The caller's deny and allow lists. They only restrict.
//  2. The rules of the operator's file, in their order. The first one that matches decides.
//     An allow rule lifts gates; it lifts a denial of the default rules only if it names
//     the finding.
//  3. The default rules. Of all that match, the strictest effect decides: deny, then gate,
//     then allow.
//
// # Findings
//
// Texts are examined as they are and decoded: percent-encoding, base64, base32,
// hexadecimal, escapes, entities and character codes, up to three layers. Secrets of
// earlier outputs and of env_context are found again if they are decoded, reversed,
// separated by other characters or split over arguments and steps. A value that is
// encrypted, compressed, or rephrased is not found.
//
// Destinations are trusted if the operator lists them or the caller names them in the goal
// or env_context. Text of tools never makes a destination trusted; only a URL that an
// output contains as a whole may be read, because it reveals nothing to its author.
package policy

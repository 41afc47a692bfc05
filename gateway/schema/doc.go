// Package schema compiles JSON Schemas of other parties and validates values with
// them, within limits. A schema of an MCP server is untrusted: it may refer to
// files and hosts, refer to itself without end, multiply the work by two with each
// level, or contain a number with a billion digits. Each of these would stop the
// process or reach an address that the operator did not name.
//
//	Compile   size, depth, number of values and references, digits of numbers ─▶ *Schema
//	Validate  the same limits for the value, then the number of steps       ─▶ *InvalidError
//
// The number of steps is computed before the validation, from the compiled schema
// and the value: each pair of a subschema and a value is visited once, so that the
// computation is fast where the validation would be exponential.
//
// Schemas are JSON Schema 2020-12, or the draft that $schema names. References to
// other documents are not resolved.
package schema

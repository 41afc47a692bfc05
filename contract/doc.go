// Package contract holds what crosses a border of caprouter: the request a
// caller sends, the classification a model proposes, the registry entry an
// operator writes, the task an agent receives, the result it returns, the
// decision and the response. Plain structs with their wire names and shape
// checks; no behaviour beyond validation, and nothing but the standard library.
//
//	Request ──▶ Classification ──▶ Decision ──▶ Task ──▶ Result ──▶ Response
//	                  RegistryEntry ──┘
//
// Fields tagged `validate` are checked by the edge that decodes them
// (internal/strictjson); Validate methods check what a tag cannot say.
// Times are RFC 3339 in UTC, durations end in _ms, scores on the wire are
// decimals (0.8) of the integer hundredths the matcher computes (80).
package contract

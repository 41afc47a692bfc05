// Package contract contains the data that crosses a border of caprouter: request,
// classification, registry entry, task, result, decision and response. They are
// plain structs with their wire names and validation, and use only the standard
// library.
//
//	Request ──▶ Classification ──▶ Decision ──▶ Task ──▶ Result ──▶ Response
//	                  RegistryEntry ──┘
//
// Tags `validate` are checked by the decoder (internal/strictjson), and Validate
// methods check what tags cannot express. Times are RFC 3339 in UTC, durations end
// in _ms, and scores on the wire are decimals (0.8) of the hundredths that the
// matcher computes (80).
package contract

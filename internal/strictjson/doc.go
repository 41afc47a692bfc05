// Package strictjson is the one door through which JSON enters and leaves: it
// decodes, encodes and checks shapes. It owns what counts as acceptable JSON
// and the words that say what is wrong with the rest; it does not know what any
// document means, nor which HTTP status an error becomes.
//
// A lenient reader lets two readers see two documents in the same bytes: one
// takes the first of two equal names, the other the last; one reads "INTENT" as
// "intent", the other ignores it. So nothing here is forgiving:
//
//	{"intent":"a","intent":"b"}      duplicate name            refused
//	{"INTENT":"a"}                   known name, other case    refused
//	{"intent":null}                  null for a plain value    refused
//	{"intent":"a"} trailing          more than one value       refused
//	{"intent":"\xff"}                not UTF-8                 refused
//	[[[[… 257 deep …]]]]             deeper than MaxDepth      refused
//
// [Unmarshal] is for our own documents and refuses unknown names as well;
// [UnmarshalForeign] is for other people's envelopes (token claims, key sets),
// which may grow members we do not know. Both report an [*Error]: a JSON pointer
// (RFC 6901) and a sentence such as "must be a string, got a number".
//
// Free-form parts (json.RawMessage, any) are checked for duplicates, UTF-8 and
// depth like the rest; null and any spelling of a name are theirs to use.
//
// [Validate] checks the `validate` tags of a decoded struct and speaks in the
// same pointers and sentences.
package strictjson

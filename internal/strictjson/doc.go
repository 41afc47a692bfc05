// Package strictjson decodes, encodes and validates JSON. All JSON of the project
// passes through it. It decides which documents are acceptable and words the errors;
// it does not know their meaning, nor the HTTP status of an error.
//
// With lenient decoding, two programs can read the same bytes differently: one uses
// the first of two equal names, the other the last; one reads "INTENT" as "intent",
// the other ignores it. Therefore these documents are rejected:
//
//	{"intent":"a","intent":"b"}      duplicate name
//	{"INTENT":"a"}                   known name in another case
//	{"intent":null}                  null for a plain value
//	{"intent":"a"} trailing          more than one value
//	{"intent":"\xff"}                invalid UTF-8
//	[[[[… 257 deep …]]]]             nesting deeper than MaxDepth
//
// [Unmarshal] is for the project's own documents and rejects unknown names as well.
// [UnmarshalAllowUnknown] is for documents of other systems (token claims, key
// sets), which may have additional members. [UnmarshalDeep] and
// [UnmarshalDeepAllowUnknown] are for the project's documents that contain documents of
// others, for example stored records, and permit four times the nesting. All return an
// [*Error] with a JSON pointer (RFC 6901) and a sentence such as "must be a string, got a
// number".
//
// Free-form parts (json.RawMessage, any) are checked for duplicate names, UTF-8 and
// depth, but may contain null and names in any case.
//
// [Validate] checks the `validate` tags of a decoded struct and reports errors in
// the same form.
package strictjson

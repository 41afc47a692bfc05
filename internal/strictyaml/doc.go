// Package strictyaml reads configuration files: one YAML document that decodes into
// a struct, and for every error the file, line, column and a suggestion. The caller
// checks the meaning of the values, and reports its own errors with their position
// through [Document].
//
//	Parse  bytes ─▶ Document    syntax, one document, no aliases, tags, duplicates
//	Decode Document ─▶ struct   known keys, right types, no key without a value
//	Errorf path ─▶ line:column  errors that the caller finds in the values
//	Err    all errors, in the order of the file
//
// The package accepts the part of YAML that corresponds to JSON's data model. It
// rejects anchors, aliases, merge keys, tags, directives and further documents;
// octal numbers and numbers with underscores; an unquoted number, date or boolean
// for a string; and a key without a value. Aliases are rejected before they are
// expanded, so that alias bombs are harmless. The non-specific tag "!" has no effect
// and is accepted.
//
// The field tag `synonym` gives a key a second name; a mapping with both is rejected.
package strictyaml

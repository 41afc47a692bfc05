// Package strictyaml reads the YAML files an operator writes: one document, a
// known shape, and for every mistake the file, line, column and what was
// probably meant. It owns which YAML is acceptable and how mistakes are worded;
// what the values mean is checked by whoever asked for them, who can point at
// lines and columns through [Document].
//
//	Parse  bytes ─▶ Document    syntax, one document, no aliases, tags, duplicates
//	Decode Document ─▶ struct   known keys, right types, nothing left empty
//	Errorf path ─▶ line:column  the caller's own findings about the values
//	Err    all of it, in the order of the file
//
// YAML is a large language and its surprises are refused rather than explained:
// anchors, aliases, merge keys, tags, directives and further documents, each
// with its place; numbers in octal or with underscores; numbers, dates and
// booleans where text is wanted ("quote it"); a key without a value. Aliases are
// refused before anything expands them, so there is no alias bomb. What is left
// is JSON's data model in a friendlier dress.
//
// (The non-specific tag, a lone "!", changes nothing we read and is not refused.)
package strictyaml

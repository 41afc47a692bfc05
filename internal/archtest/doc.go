// Package archtest holds the architecture of caprouter as tests: which package
// may import which, where each library lives, where goroutines start, and a
// few habits that keep the code readable. It has no code besides its tests and
// is imported by nothing.
//
// The tables are in tables_test.go. Each row carries its reason, a row that is
// not needed any more fails, and whoever adds a package, an arrow or a library
// argues the row in the commit that adds it:
//
//	contract ◀─ run, strictjson, … ◀─ lexical, telemetry, auth ◀─ capabilities ◀─ … ◀─ cmd
//	  level 0        level 1                  level 2               level 3
//
// An arrow points to a lower level; packages of one level do not know each
// other. Every rule is a function from parsed files to complaints. One test
// runs them over this module, the others over small planted sources, to show
// that each rule bites.
//
// The files are read in this process, never through `go list`: the test cache
// notes which files a test opens, but not what a child process read, and would
// serve yesterday's verdict.
package archtest

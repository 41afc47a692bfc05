// Package archtest checks the architecture of the module: which package may import
// which, which package uses a library, where goroutines start, the sizes of files,
// types and packages, and the language of names, comments and documents. It
// contains tests only.
//
// tables_test.go contains the tables. Each row has a reason, and an unused row is an
// error, so a commit that adds a package, an import or a library explains its row:
//
//	contract ◀─ run, strictjson, … ◀─ lexical, telemetry, auth ◀─ capabilities ◀─ … ◀─ cmd
//	  level 0        level 1                  level 2               level 3
//
// A package imports packages of lower levels only. Each rule is a function from
// parsed files to messages. TestArchitecture applies the rules to this module. The
// other tests apply them to small sources, to show that each rule finds its
// violation.
//
// The tests read the files in this process and not with `go list`, because the test
// cache does not track the files that a child process reads.
package archtest

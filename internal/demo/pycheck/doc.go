// Package pycheck is a static check of Python source, written for the demo's
// quality agent: small, but it does the work. A tokenizer that knows strings,
// f-strings, comments and brackets feeds a tree of statements, and each rule is
// one function over that tree. It owns the rules and the text of a report; it
// never runs Python, resolves no imports and knows nothing of tasks.
//
//	source ─▶ lex ─▶ tokens ─▶ parse ─▶ statements ─▶ rules ─▶ findings ─▶ Report
//
//	r := pycheck.Check("try:\n    go()\nexcept:\n    pass\n", pycheck.Options{})
//	r.Findings[0] // line 3, rule "bare-except"
//
// Any bytes are taken: source that is not Python yields findings of the syntax
// rules, never a panic, and every finding's line is a line of the source. The
// cost grows with the length of the source. A line that ends in "# noqa" is
// left alone, as Python's own checkers do.
package pycheck

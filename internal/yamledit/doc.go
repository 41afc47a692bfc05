// Package yamledit appends to lists in YAML text. It only inserts, so that
// comments, order and formatting of the text survive, and compares the values
// before and after, so that a text that it does not understand is an error and is
// never changed otherwise.
//
//	text, err := yamledit.Append(text, []string{"clients", "quality_agent", "examples", "code_review"},
//		yamledit.Item{yamledit.Quote("review this python code")})
package yamledit

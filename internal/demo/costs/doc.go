// Package costs reads a cost export as CSV and says where the money goes, for
// the demo's billing agent. It finds the columns by their names, works out how
// numbers and dates are written, and adds up exactly: amounts are rational
// numbers (math/big) from the file to the report, and are rounded once, when
// they are printed. It knows nothing of tasks and reads no files.
//
//	CSV ─▶ Read ─▶ Table ─▶ Analyse ─▶ Report ─▶ Summary
//
//	t, err := costs.Read("date,service,cost\n2026-01-01,Storage,1.10\n")
//	costs.Analyse(t).Total // 1.10
//
// A table that cannot be trusted is refused as a whole, with the row and the
// column: a total without the rows that did not parse would be wrong and look
// right.
package costs

// Package redact finds personal data and secrets in a text and masks them: e-mail
// addresses, phone numbers, card numbers, IBANs, IP addresses, national identifiers
// with check digits, keys and tokens.
// Masked text can be restored. A registry entry's `restore` specifies which kinds
// an agent receives unmasked.
//
//	MaskText:     mail bob@example.com, card 4111 1111 1111 1111  ──▶  mail [EMAIL_1], card [CARD_1]
//	RestoreText:  I wrote to [EMAIL_1]                            ──▶  I wrote to bob@example.com
//
// The steps are:
//
//	fold      replace full-width digits, unusual spaces and invisible characters in
//	          a copy with a position map; most texts need no copy
//	count     count byte classes in one pass, to skip most detectors
//	find      run the remaining detectors; each takes linear time
//	resolve   of overlapping values keep the longer one, then the more specific
//	          kind, and scan the gaps again
//	replace   insert a placeholder, the same for equal values of a request
//
// Text that looks like a placeholder, such as "[EMAIL_1]", is masked as
// "[LITERAL_1]". Therefore RestoreText(MaskText(text), nil) is text for every valid
// text, and a caller cannot insert a placeholder to obtain another value.
//
// Each kind has one entry in kinds.go and a detector. National identifiers share one,
// with a table of their notations.
//
// # Limits
//
// The following are not detected: values spelled in words ("bob at example dot
// com"), in look-alike letters, in base64 or split over lines; digits that may be a
// phone number without a hint nearby; passwords without a name, separated from it
// by other words ("the password for bob is …") or glued to a flag (-phunter2); the
// rest of an unquoted password after a space, quote or bracket; JSON numbers, and
// members with other names inside an object named like a secret; the second line of a
// YAML block.
//
// A template such as ${VAR}, {{var}} or <placeholder> is not a secret, unless other
// text is part of the value.
package redact

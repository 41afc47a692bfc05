// Package redact finds what identifies a person or opens a door in a text, and
// masks it: e-mail addresses, phone numbers, card numbers, IBANs, IP addresses,
// keys and tokens. It owns how each kind looks and how masked text gets back to
// what it was. It does not own who gets what back: a registry entry's `restore`
// says so, and the router obeys.
//
//	Mask:     mail bob@example.com, card 4111 1111 1111 1111  ──▶  mail [EMAIL_1], card [CARD_1]
//	Restore:  I wrote to [EMAIL_1]                            ──▶  I wrote to bob@example.com
//
// The way of a text:
//
//	fold      full-width digits, odd blanks, characters nobody sees → a plain copy
//	          with the way back; texts without any are not copied
//	look      one pass over the bytes: what could be in there at all
//	find      the kinds that could, each with its own scanner, all linear
//	resolve   of finds that overlap the longer stays, then the one whose row in
//	          the table of kinds stands first; what is left over is looked at again
//	replace   by a placeholder; the same value has the same one in a whole request
//
// A text that already holds "[EMAIL_1]" is not confused with ours: what looks
// like a placeholder is itself a value, and becomes "[LITERAL_1]". So for every
// valid text Restore(Mask(text), nil) is that text, and nobody can have another
// one's value put into what he wrote.
//
// A kind is one row in kinds.go with one scanner in a file of its own.
//
// # What gets through
//
// Values spelled in words ("bob at example dot com"), in look-alike letters, in
// base64 or split over lines; bare digits that could be a phone number but
// nothing near them says so; passwords without a word that names them, or with
// other words between ("the password for bob is …"), or glued to a flag (-phunter2);
// of a password without quotes what follows a blank, a quote or a bracket; numbers
// in JSON that are not strings, and what an object under the name of a secret
// holds under other names.
//
// What is written as a template alone, ${VAR}, {{var}} or <placeholder>, is no
// secret; what only holds such marks is one.
package redact

package redact

import (
	"fmt"
	"slices"
	"strings"
)

// The kinds of text that are masked: names in a registry's `restore` and
// `requires.data_classes`.
const (
	Email  = "email"
	Phone  = "phone"
	Card   = "card"
	IBAN   = "iban"
	IP     = "ip"
	Secret = "secret"
)

// kind is how one kind of value is called and found.
type kind struct {
	name  string
	label string // in a placeholder: [label_1]
	// maybe reports, of what a look at the bytes saw, whether there can be one.
	maybe func(looks) bool
	// find appends where the values are. It takes time linear in the text.
	find func(text string, found []span) []span
}

// kinds has a row for each, the most specific first: of two finds of the same
// length that overlap, the one whose row comes first stays.
var kinds = [...]kind{
	{Secret, "SECRET", looks.secret, findSecrets},
	{IBAN, "IBAN", looks.iban, findIBANs},
	{Card, "CARD", looks.card, findCards},
	{Email, "EMAIL", looks.email, findEmails},
	{IP, "IP", looks.ip, findIPs},
	{Phone, "PHONE", looks.phone, findPhones},
	// Text that looked like a placeholder from the start. It is no kind: nobody
	// asks for it, and it holds nothing private.
	{"", literalLabel, looks.literal, nil},
}

const (
	secretRow    = 0
	literal      = len(kinds) - 1 // the row of it
	literalLabel = "LITERAL"
)

// Kinds returns the names of all kinds, sorted.
func Kinds() []string {
	names := make([]string, 0, literal)
	for _, k := range kinds[:literal] {
		names = append(names, k.name)
	}
	slices.Sort(names)
	return names
}

// rowOf returns the row of a kind, −1 for none.
func rowOf(name string) int {
	return slices.IndexFunc(kinds[:literal], func(k kind) bool { return k.name == name })
}

// kindSet is a set of rows.
type kindSet uint32

// everyKind holds all kinds.
const everyKind = kindSet(1)<<literal - 1

func (s kindSet) has(row int) bool { return s&(1<<row) != 0 }

// setOf returns the rows of the named kinds.
func setOf(names []string) (kindSet, error) {
	var set kindSet
	for _, name := range names {
		row := rowOf(name)
		if row < 0 {
			return 0, fmt.Errorf("%q is no kind of text that is masked: %s", name, strings.Join(Kinds(), ", "))
		}
		set |= 1 << row
	}
	return set, nil
}

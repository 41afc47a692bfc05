package redact

import (
	"fmt"
	"slices"
	"strings"
)

// Kinds of masked text, as used in a registry's `restore` and
// `requires.data_classes`.
const (
	Email  = "email"
	Phone  = "phone"
	Card   = "card"
	IBAN   = "iban"
	IP     = "ip"
	Secret = "secret"
)

// detector finds the values of one kind.
type detector struct {
	name  string
	label string // in a placeholder: [label_1]
	// possible reports, from the byte counts of a text, whether it can contain
	// a value.
	possible func(byteCounts) bool
	// find appends the values. It must take linear time.
	find func(text string, found []span) []span
}

// detectors are ordered by specificity: if two values of the same length
// overlap, the one with the earlier detector is kept.
var detectors = [...]detector{
	{Secret, "SECRET", byteCounts.mayHaveSecret, findSecrets},
	{IBAN, "IBAN", byteCounts.mayHaveIBAN, findIBANs},
	{Card, "CARD", byteCounts.mayHaveCard, findCards},
	{Email, "EMAIL", byteCounts.mayHaveEmail, findEmails},
	{IP, "IP", byteCounts.mayHaveIP, findIPs},
	{Phone, "PHONE", byteCounts.mayHavePhone, findPhones},
	// Text of the caller that looks like a placeholder. It is not a kind: it is
	// not private, and cannot be selected.
	{"", literalLabel, byteCounts.mayHavePlaceholder, nil},
}

const (
	secretRow    = 0
	literalRow   = len(detectors) - 1 // of text that looks like a placeholder
	literalLabel = "LITERAL"
)

// Kinds returns the names of all kinds, sorted.
func Kinds() []string {
	names := make([]string, 0, literalRow)
	for _, k := range detectors[:literalRow] {
		names = append(names, k.name)
	}
	slices.Sort(names)
	return names
}

// detectorRow returns the index of a kind's detector, or −1.
func detectorRow(name string) int {
	return slices.IndexFunc(detectors[:literalRow], func(k detector) bool { return k.name == name })
}

// kindSet is a set of detector indexes.
type kindSet uint32

// allKinds contains all kinds.
const allKinds = kindSet(1)<<literalRow - 1

func (s kindSet) has(row int) bool { return s&(1<<row) != 0 }

// parseKinds returns the set of the named kinds.
func parseKinds(names []string) (kindSet, error) {
	var set kindSet
	for _, name := range names {
		row := detectorRow(name)
		if row < 0 {
			return 0, fmt.Errorf("%q is no kind of text that is masked: %s", name, strings.Join(Kinds(), ", "))
		}
		set |= 1 << row
	}
	return set, nil
}

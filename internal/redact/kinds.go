package redact

import (
	"fmt"
	"slices"
	"strings"
)

// Kinds of masked text, as used in a registry's `restore`, `requires.data_classes`
// and `accepts_data_classes`.
const (
	Email  = "email"
	Phone  = "phone"
	Card   = "card"
	IBAN   = "iban"
	IP     = "ip"
	CPF    = "cpf"  // Brazilian person
	CNPJ   = "cnpj" // Brazilian company
	NIF    = "nif"  // Portuguese taxpayer
	DNI    = "dni"  // Spanish person; also the NIE of a foreigner
	SSN    = "ssn"  // United States social security number
	Secret = "secret"
)

// detector finds the values of one kind.
type detector struct {
	name  string
	label string // in a placeholder: [label_1]
	// possible reports, from the byte counts of a text, whether it can contain
	// a value.
	possible func(byteCounts) bool
	// find appends the values. It must take linear time. It is nil for rows that
	// findAll finds together.
	find func(text string, found []span) []span
}

// detectors are ordered by specificity: if two values of the same length
// overlap, the one with the earlier detector is kept.
var detectors = [...]detector{
	secretRow: {Secret, "SECRET", byteCounts.mayHaveSecret, findSecrets},
	ibanRow:   {IBAN, "IBAN", byteCounts.mayHaveIBAN, findIBANs},
	cardRow:   {Card, "CARD", byteCounts.mayHaveCard, findCards},
	cnpjRow:   {CNPJ, "CNPJ", byteCounts.mayHaveNationalID, nil},
	cpfRow:    {CPF, "CPF", byteCounts.mayHaveNationalID, nil},
	ssnRow:    {SSN, "SSN", byteCounts.mayHaveNationalID, nil},
	nifRow:    {NIF, "NIF", byteCounts.mayHaveNationalID, nil},
	dniRow:    {DNI, "DNI", byteCounts.mayHaveNationalID, nil},
	emailRow:  {Email, "EMAIL", byteCounts.mayHaveEmail, findEmails},
	ipRow:     {IP, "IP", byteCounts.mayHaveIP, findIPs},
	phoneRow:  {Phone, "PHONE", byteCounts.mayHavePhone, findPhones},
	// Text of the caller that looks like a placeholder. It is not a kind: it is
	// not private, and cannot be selected.
	literalRow: {"", literalLabel, byteCounts.mayHavePlaceholder, nil},
}

const (
	secretRow = iota
	ibanRow
	cardRow
	cnpjRow
	cpfRow
	ssnRow
	nifRow
	dniRow
	emailRow
	ipRow
	phoneRow
	literalRow // of text that looks like a placeholder
)

// nationalIDs are the kinds that findNationalIDs finds.
const nationalIDs = kindSet(1<<cnpjRow | 1<<cpfRow | 1<<ssnRow | 1<<nifRow | 1<<dniRow)

const literalLabel = "LITERAL"

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

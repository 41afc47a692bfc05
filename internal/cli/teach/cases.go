package teach

import (
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/localfile"
)

// ReadInputs returns the inputs of a case file, which need not exist.
func ReadInputs(file string) (map[string]bool, error) {
	data, err := localfile.ReadForEdit(file)
	if err != nil {
		return nil, err
	}
	cases, _ := golden.ReadYAML(file, data, nil) // mistakes are reported when a case is added
	inputs := map[string]bool{}
	for i := range cases {
		inputs[strings.TrimSpace(cases[i].Input)] = true
	}
	return inputs, nil
}

// CheckCaseFile reports cases that do not fit the registry, for example because they are
// for another one: no case can be added to their file. Other mistakes are reported when
// a case is added.
func CheckCaseFile(errOut io.Writer, file string, registry *capabilities.Snapshot) error {
	data, err := localfile.ReadForEdit(file)
	if err != nil {
		return err
	}
	if _, err := golden.ReadYAML(file, data, nil); err != nil {
		return nil //nolint:nilerr // a file without cases is no mistake here
	}
	_, err = golden.ReadYAML(file, data, golden.NewDeclaredNames(registry))
	if err != nil {
		cmdline.PrintError(errOut, file+" has cases that do not fit the registry: correct or remove them, or name another file with --file")
	}
	return err
}

// AddCase returns the edit that appends the case to a file, and sets its id.
func AddCase(file string, c *golden.Case, names *golden.DeclaredNames) (localfile.Edit, error) {
	before, err := localfile.ReadForEdit(file)
	if err != nil {
		return localfile.Edit{}, err
	}
	after, err := golden.AppendCase(file, before, c, names)
	return localfile.Edit{Path: file, Before: before, After: after}, err
}

// placeholder matches what masking leaves of personal data and secrets, e.g. [EMAIL_1].
var placeholder = regexp.MustCompile(`\[[A-Z]+(?:_[A-Z]+)*_[0-9]+\]`)

// FindPlaceholders returns the placeholders of a masked text.
func FindPlaceholders(text string) []string {
	found := placeholder.FindAllString(text, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

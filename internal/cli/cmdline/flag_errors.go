package cmdline

import (
	"cmp"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/strictyaml"
)

// flagNames matches the names of flags in the usage of a command.
var flagNames = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([\w-]+)`)

// suggestFlag returns a question for the flag that is most similar to an unknown one, "" if
// none is.
func suggestFlag(cmd *cobra.Command, err error) string {
	unknown, ok := errors.AsType[interface {
		error
		GetSpecifiedName() string
		GetSpecifiedShortnames() string // j and the rest of -json
	}](err)
	if !ok {
		return ""
	}
	var names []string
	for _, match := range flagNames.FindAllStringSubmatch(cmd.Flags().FlagUsages(), -1) {
		names = append(names, match[1])
	}
	near := strictyaml.Nearest(cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName()), names)
	if near != "" && near != unknown.GetSpecifiedName() { // else the flag exists, and its value is the mistake
		return ", did you mean --" + near + "?"
	}
	return ""
}

// flagValueError is the error of a flag about its value. It names the flag.
type flagValueError struct{ error }

// explainFlagMistake returns the error of the library about a flag without internal text.
func explainFlagMistake(err error) error {
	if mistake, ok := errors.AsType[flagValueError](err); ok {
		return mistake
	}
	if cause, ok := errors.AsType[*strconv.NumError](err); ok { // of a switch, because there are no other numbers
		return errors.New(strings.TrimSuffix(err.Error(), cause.Error()) + "it is true or false")
	}
	return err
}

// ExplainFlagError returns the error of the library about a flag as a usage error, with the
// flag that was probably meant.
func ExplainFlagError(cmd *cobra.Command, err error) error {
	return UsageErrorf(cmd, "%w%s", explainFlagMistake(err), suggestFlag(cmd, err))
}

package cmdline

import "github.com/spf13/cobra"

// YAMLExtensions returns the extensions of YAML files.
func YAMLExtensions() []string { return []string{"yaml", "yml"} }

// CompleteYAML completes one argument, a YAML file.
func CompleteYAML(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return YAMLExtensions(), cobra.ShellCompDirectiveFilterFileExt
}

// CompleteJSON completes one argument, a JSON file.
func CompleteJSON(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []cobra.Completion{"json"}, cobra.ShellCompDirectiveFilterFileExt
}

// MustSucceed panics on errors of cobra about unknown flags, which are bugs of this
// program.
func MustSucceed(err error) {
	if err != nil {
		panic(err)
	}
}

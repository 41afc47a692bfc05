package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/orchestrator/policy"
)

// schemaDir is the directory that init writes the schemas into, beside the files that
// refer to them.
const schemaDir = "schemas"

// fileSchema is the JSON Schema of one kind of YAML file.
type fileSchema struct {
	name     string // argument of the command; the file is name.json
	generate func() (map[string]any, error)
}

func fileSchemas() []fileSchema {
	return []fileSchema{
		{"registry", capabilities.Schema},
		{"config", config.Schema},
		{"cases", golden.Schema},
		{"policy", policy.Schema},
	}
}

func (s *fileSchema) encode() ([]byte, error) {
	schema, err := s.generate()
	if err != nil {
		return nil, err
	}
	data, err := strictjson.MarshalIndent(schema)
	return append(data, '\n'), err
}

// schemaFiles returns the schemas as files below dir.
func schemaFiles(dir string) ([]localfile.File, error) {
	var files []localfile.File
	for _, s := range fileSchemas() {
		data, err := s.encode()
		if err != nil {
			return nil, err
		}
		files = append(files, localfile.File{Path: filepath.Join(dir, schemaDir, s.name+".json"), Content: data})
	}
	return files, nil
}

func newSchemaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema registry|config|cases|policy",
		Short: "Print the JSON Schema of a YAML file",
		Long: "Print the JSON Schema of capabilities.yaml, caprouter.yaml, a file of golden cases or a policy file, with\n" +
			"which an editor completes and checks keys. The files of caprouter init refer to copies of the schemas.",
		Example: `  caprouter schema registry > schemas/registry.json`,
		Args:    cmdline.ArgsBetween("registry, config, cases or policy", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, s := range fileSchemas() {
				if s.name != args[0] {
					continue
				}
				data, err := s.encode()
				if err == nil {
					_, err = cmd.OutOrStdout().Write(data)
				}
				return err
			}
			return cmdline.UsageErrorf(cmd, "there is no schema %q: registry, config, cases or policy", args[0])
		},
	}
	for _, s := range fileSchemas() {
		cmd.ValidArgs = append(cmd.ValidArgs, s.name)
	}
	return cmd
}

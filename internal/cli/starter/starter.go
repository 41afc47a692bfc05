// Package starter writes the files with which a user begins: a configuration with every key
// explained, a registry, golden cases, and the JSON Schemas of the files.
package starter

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/demo"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// The files that init writes. The template of the configuration contains the defaults
// of the program.
var (
	//go:embed files/caprouter.yaml.tmpl
	configTemplate string
	//go:embed files/capabilities.yaml
	registryFile []byte
	//go:embed files/cases.yaml
	casesFile []byte
)

// CasesFile is the name of the golden cases that init writes.
const CasesFile = "cases.yaml"

// defaultConfig returns the defaults, with the sample agent of the registry.
func defaultConfig() config.Config {
	cfg := config.Default()
	cfg.SampleAgent = demo.SampleAddress
	return cfg
}

// ConfigAt returns the defaults for a router that listens on HOST:PORT. The port of the sample
// agent is as far from that of the router as by default.
func ConfigAt(listen string) (config.Config, error) {
	cfg := defaultConfig()
	if listen == cfg.Listen {
		return cfg, nil
	}
	cfg.Listen = listen
	if err := cfg.Validate(); err != nil {
		return cfg, err
	}
	_, text, _ := net.SplitHostPort(listen)
	port, err := strconv.Atoi(text)
	if err != nil || port == 0 {
		return cfg, fmt.Errorf("listen: name a port by its number, which stays the same at each start, not %q", text)
	}
	sample := port + samplePortDistance
	if sample > math.MaxUint16 {
		sample = port - samplePortDistance
	}
	cfg.SampleAgent = net.JoinHostPort("127.0.0.1", strconv.Itoa(sample))
	return cfg, nil
}

// samplePortDistance is the distance of the default ports of router and sample agent, 8080 and
// 9101.
const samplePortDistance = 1021

// Write writes all files into the directory, or none, with the values of cfg. It
// returns the paths of the files apart from the schemas. It fails if one of the files exists.
func Write(dir string, cfg *config.Config) (written []string, err error) {
	content, err := renderConfig(cfg)
	if err != nil {
		return nil, err
	}
	schemas, err := schemaFiles(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, localfile.ShortenError(err)
	}
	files := []localfile.File{
		{Path: filepath.Join(dir, config.DefaultFile), Content: content},
		{Path: filepath.Join(dir, config.DefaultRegistryFile), Content: bytes.ReplaceAll(registryFile, []byte(demo.SampleAddress), []byte(cfg.SampleAgent))},
		{Path: filepath.Join(dir, CasesFile), Content: casesFile},
	}
	for _, f := range files {
		written = append(written, f.Path)
	}
	if err := writeNewFiles(slices.Concat(files, schemas)); err != nil {
		return nil, err
	}
	return written, nil
}

// writeNewFiles writes all files or none. It fails if one of them exists.
func writeNewFiles(files []localfile.File) error {
	for _, f := range files {
		if _, err := os.Lstat(f.Path); err == nil {
			return errInitExists(f.Path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return localfile.ShortenError(err)
		}
	}
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o750); err != nil {
			return localfile.ShortenError(err)
		}
	}
	for i, f := range files {
		if err := localfile.Create(f); err != nil {
			if errors.Is(err, fs.ErrExist) { // created since it was looked for
				err = errInitExists(f.Path)
			}
			for _, written := range files[:i] {
				err = errors.Join(err, os.Remove(written.Path))
			}
			return localfile.ShortenError(err)
		}
	}
	return nil
}

func errInitExists(path string) error {
	return fmt.Errorf("%s exists: move it away, or name another directory: caprouter init DIR", path)
}

// renderConfig returns caprouter.yaml with the values of cfg.
func renderConfig(cfg *config.Config) ([]byte, error) {
	t, err := template.New(config.DefaultFile).Funcs(template.FuncMap{
		"yaml":         formatYAML,
		"defaultModel": func() string { return llm.DefaultModel },
	}).Parse(configTemplate)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, cfg)
	return b.Bytes(), err
}

// plainScalar matches text that needs no quotes in any version of YAML.
var plainScalar = regexp.MustCompile(`^(\./|/)?[a-zA-Z][a-zA-Z0-9_./-]*$`)

// formatYAML encodes a value as YAML, of which JSON is a subset.
func formatYAML(v any) (string, error) {
	r := reflect.ValueOf(v)
	switch {
	case r.Kind() == reflect.String && plainScalar.MatchString(r.String()):
		switch strings.ToLower(r.String()) {
		case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		default:
			return r.String(), nil
		}
	case r.Kind() == reflect.Slice && r.Len() == 0:
		return "[]", nil
	case r.Type() == reflect.TypeFor[config.StringList]() && r.Len() == 1:
		return formatYAML(r.Index(0).Interface())
	}
	data, err := strictjson.Marshal(v)
	return string(data), err
}

package routerflags

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/config"
)

// LoadRegistry loads the registry FILE of the arguments or, without one, that of the
// configuration. Mistakes in other keys of the configuration do not matter.
func (f *Config) LoadRegistry(args []string) (config.Config, *capabilities.Snapshot, error) {
	cfg, err := config.Load(f.ConfigPath(), os.LookupEnv)
	if err != nil {
		return cfg, nil, err
	}
	if len(args) == 1 {
		cfg.Registry.File = args[0]
	}
	s, err := ReadRegistry(RegistryFile(&cfg))
	if len(args) == 0 && errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no registry file %s: name one, or write one with `caprouter init`", RegistryFile(&cfg))
	}
	return cfg, s, err
}

// ReadRegistry reads a registry file.
func ReadRegistry(file string) (*capabilities.Snapshot, error) {
	s, err := capabilities.Load(file)
	return s, localfile.ShortenError(err)
}

// ExplainMissingRegistry adds advice to the error if the registry file does not exist.
func ExplainMissingRegistry(err error, cfg *config.Config) error {
	file := cmp.Or(cfg.Registry.File, config.DefaultRegistryFile)
	if path, ok := errors.AsType[*fs.PathError](err); ok && path.Path == file && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no registry file %s: name one with --registry FILE, or write one with `caprouter init`", file)
	}
	return err
}

// RegistryFile returns the path of the registry file.
func RegistryFile(cfg *config.Config) string {
	return cmp.Or(cfg.Registry.File, config.DefaultRegistryFile)
}

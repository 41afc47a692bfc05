package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/caprouter/caprouter/internal/strictjson"
)

const mainPackage = "github.com/caprouter/caprouter/cmd/caprouter"

// Patch changes one source file of a package while the router is built, so that the
// file itself contains nothing for tests.
type Patch struct {
	Package string // import path, of any module
	File    string // name of the file in the package
	// Old is text that occurs once in the file, and New replaces it. If Old is "", the
	// file must not exist, and New is its content.
	Old, New string
}

// Build compiles the router, with the patches, into dir and returns the path of the
// binary.
func Build(ctx context.Context, dir string, patches ...Patch) (string, error) {
	binary := filepath.Join(dir, "caprouter")
	flags, err := writePatched(ctx, dir, patches)
	if err != nil {
		return "", fmt.Errorf("patch the router: %w", err)
	}
	// -trimpath, so that the build cache does not depend on dir. Together with
	// CGO_ENABLED=0 it is how the released binary is built.
	args := append([]string{"build", "-trimpath", "-o", binary}, append(flags, mainPackage)...)
	if _, err := runGo(ctx, args...); err != nil {
		return "", err
	}
	return binary, nil
}

func runGo(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // arguments of the driver
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
}

// writePatched writes the patched files into dir and returns the flags of the go
// command that select them. Files of this module are replaced by an overlay, which the
// go command does not permit for other modules: those are copied.
func writePatched(ctx context.Context, dir string, patches []Patch) (flags []string, err error) {
	overlay := map[string]string{} // path of the patched copy, by original path
	copied := map[string]string{}  // directory of the patched copy, by path of the module
	for i, p := range patches {
		out, err := runGo(ctx, "list", "-f", "{{.Dir}}\n{{.Module.Path}}\n{{.Module.Dir}}\n{{.Module.Main}}", p.Package)
		if err != nil {
			return nil, err
		}
		found := strings.Split(out, "\n")
		original := filepath.Join(found[0], p.File)
		target := overlay[original]
		if module, moduleDir := found[1], found[2]; found[3] != "true" {
			if copied[module] == "" {
				copied[module] = filepath.Join(dir, fmt.Sprintf("module-%d", i))
				if err := os.CopyFS(copied[module], os.DirFS(moduleDir)); err != nil {
					return nil, err
				}
			}
			target = filepath.Join(copied[module], strings.TrimPrefix(original, moduleDir))
		} else if target == "" {
			target = filepath.Join(dir, fmt.Sprintf("patched-%d-%s", i, p.File))
			overlay[original] = target
			if err := copyIfExists(target, original); err != nil {
				return nil, err
			}
		}
		if err := p.applyTo(target); err != nil {
			return nil, err
		}
	}
	modFlags, err := replaceModules(ctx, dir, copied)
	if err != nil || len(overlay) == 0 {
		return modFlags, err
	}
	path := filepath.Join(dir, "overlay.json")
	list, err := strictjson.Marshal(map[string]any{"Replace": overlay})
	return append(modFlags, "-overlay", path), errors.Join(err, os.WriteFile(path, list, 0o600))
}

// replaceModules writes a copy of go.mod that uses the copied modules.
func replaceModules(ctx context.Context, dir string, copied map[string]string) (flags []string, err error) {
	if len(copied) == 0 {
		return nil, nil
	}
	original, err := runGo(ctx, "env", "GOMOD")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "patched.mod")
	err = errors.Join(copyIfExists(path, original), copyIfExists(filepath.Join(dir, "patched.sum"), strings.TrimSuffix(original, "mod")+"sum"))
	for module, at := range copied {
		if err == nil {
			_, err = runGo(ctx, "mod", "edit", "-replace="+module+"="+at, path)
		}
	}
	return []string{"-modfile", path}, err
}

func copyIfExists(to, from string) error {
	data, err := os.ReadFile(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return errors.Join(err, os.WriteFile(to, data, 0o600))
}

// applyTo changes the copy of the file.
func (p *Patch) applyTo(path string) error {
	data, err := os.ReadFile(path)
	switch {
	case p.Old == "" && errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	case p.Old == "":
		return fmt.Errorf("%s/%s exists already", p.Package, p.File)
	case strings.Count(string(data), p.Old) != 1:
		return fmt.Errorf("%s/%s contains %d times what the patch replaces, want once:\n%s", p.Package, p.File, strings.Count(string(data), p.Old), p.Old)
	}
	text := p.New
	if p.Old != "" {
		text = strings.Replace(string(data), p.Old, p.New, 1)
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

package process

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// BinaryFlag adds the flag -binary of a driver.
func BinaryFlag(binary *string) {
	flag.StringVar(binary, "binary", "", "the router to run; it is built if this is not set")
}

// KeepFlag adds the flag -keep of a driver.
func KeepFlag(keep *bool) {
	flag.BoolVar(keep, "keep", false, "keep the directory with the data and the logs")
}

// RunDriver runs a driver until it ends or the process is interrupted. If it fails,
// RunDriver prints the error and exits with 1.
func RunDriver(name string, run func(ctx context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// MakeRunDir makes the directory of a run. remove removes it; if it is to be kept,
// MakeRunDir prints its name instead.
func MakeRunDir(name string, keep bool, out io.Writer) (dir string, remove func() error, err error) {
	if dir, err = os.MkdirTemp("", "caprouter-"+name+"-"); err != nil {
		return "", nil, err
	}
	if keep {
		fmt.Fprintln(out, "directory:", dir)
		return dir, func() error { return nil }, nil
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}

// FindOrBuild returns the absolute path of the binary, or of a router that it compiles into
// dir if binary is "".
func FindOrBuild(ctx context.Context, binary, dir string) (string, error) {
	if binary == "" {
		return Build(ctx, dir)
	}
	return filepath.Abs(binary)
}

package keyring

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// openInEnv is an environment variable with a directory. If it is set, the test binary opens the
// ring in the directory, prints its key set and exits. TestOpen_ConcurrentProcessesShareKey
// starts such processes.
const openInEnv = "CAPROUTER_TEST_OPEN_RING_IN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(openInEnv); dir != "" {
		s, err := Open(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("%s", s.JWKS())
		return
	}
	goleak.VerifyTestMain(m)
}

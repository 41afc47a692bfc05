package keyring

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// openInEnv makes the test binary open the ring of that directory, print its key
// set and exit: the other processes of TestOpen_ConcurrentProcessesShareKey.
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

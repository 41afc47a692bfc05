package auth_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/internal/auth"
)

// openInEnv makes the test binary open the signer of that directory, print its key
// set and exit: the other processes of TestOpenSigner_ConcurrentProcessesShareKey.
const openInEnv = "CAPROUTER_TEST_OPEN_SIGNER_IN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(openInEnv); dir != "" {
		s, err := auth.OpenSigner(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("%s", s.JWKS())
		return
	}
	goleak.VerifyTestMain(m)
}

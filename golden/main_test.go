package golden

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/capabilities"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// registry loads the registry of testdata.
func registry(t testing.TB) *capabilities.Snapshot {
	t.Helper()
	s, err := capabilities.Load("testdata/registry.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

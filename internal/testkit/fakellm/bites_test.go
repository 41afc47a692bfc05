package fakellm

import (
	"os"
	"os/exec"
	"testing"
)

// slipOfChild names, for a test that runs this binary again, the slip of the
// provider there.
const slipOfChild = "FAKELLM_SLIP"

// TestSuiteBites has the suite run, in another process, over providers with one
// slip each: it must fail them.
func TestSuiteBites(t *testing.T) {
	if slip := os.Getenv(slipOfChild); slip != "" {
		Suite(t, Gemini, openReference(slip))
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for slip, parts := range map[string]string{
		"retries":              "TestSuiteBites/failures/503",
		"thoughts":             "TestSuiteBites/replies",
		"key twice":            "TestSuiteBites/secrets",
		"system with the user": "TestSuiteBites/request",
	} {
		t.Run(slip, func(t *testing.T) {
			run := func(slip string) error {
				cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestSuiteBites$/"+parts[len("TestSuiteBites/"):])
				cmd.Env = append(os.Environ(), slipOfChild+"="+slip)
				out, err := cmd.CombinedOutput()
				t.Logf("%.2000s", out)
				return err
			}
			if err := run("none"); err != nil {
				t.Errorf("got %v without a slip, want the suite to pass", err)
			}
			if err := run(slip); err == nil {
				t.Error("got no failure, want the suite to fail")
			}
		})
	}
}

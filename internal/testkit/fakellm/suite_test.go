package fakellm

import (
	"os"
	"os/exec"
	"testing"
)

// slipOfChild is the environment variable with the provider's error in the
// child process.
const slipOfChild = "FAKELLM_SLIP"

// TestSuite_FailsForABadProvider runs the suite in another process over
// providers with one error each: it must fail.
func TestSuite_FailsForABadProvider(t *testing.T) {
	if slip := os.Getenv(slipOfChild); slip != "" {
		Suite(t, Gemini, openReference(slip))
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for slip, parts := range map[string]string{
		"retries":              "TestSuite_FailsForABadProvider/failures/503",
		"thoughts":             "TestSuite_FailsForABadProvider/replies",
		"key twice":            "TestSuite_FailsForABadProvider/secrets",
		"system with the user": "TestSuite_FailsForABadProvider/request",
	} {
		t.Run(slip, func(t *testing.T) {
			run := func(slip string) error {
				cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestSuite_FailsForABadProvider$/"+parts[len("TestSuite_FailsForABadProvider/"):])
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

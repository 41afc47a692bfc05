package fakellm

import (
	"os"
	"os/exec"
	"testing"
)

// childDefect is the environment variable with the provider's defect in the child process.
const childDefect = "FAKELLM_DEFECT"

// TestSuite_FailsForDefectiveProvider runs the suite in another process with providers with one
// defect each: it must fail.
func TestSuite_FailsForDefectiveProvider(t *testing.T) {
	if defect := os.Getenv(childDefect); defect != "" {
		Suite(t, Gemini, openReference(defect))
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for defect, parts := range map[string]string{
		"retries":              "TestSuite_FailsForDefectiveProvider/failures/503",
		"thoughts":             "TestSuite_FailsForDefectiveProvider/replies",
		"key twice":            "TestSuite_FailsForDefectiveProvider/secrets",
		"system with the user": "TestSuite_FailsForDefectiveProvider/request",
	} {
		t.Run(defect, func(t *testing.T) {
			run := func(defect string) error {
				cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestSuite_FailsForDefectiveProvider$/"+parts[len("TestSuite_FailsForDefectiveProvider/"):])
				cmd.Env = append(os.Environ(), childDefect+"="+defect)
				out, err := cmd.CombinedOutput()
				t.Logf("%.2000s", out)
				return err
			}
			if err := run("none"); err != nil {
				t.Errorf("got %v without a defect, want the suite to pass", err)
			}
			if err := run(defect); err == nil {
				t.Error("got no failure, want the suite to fail")
			}
		})
	}
}

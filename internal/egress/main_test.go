package egress_test

import (
	"fmt"
	"net"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/internal/testkit/fakenet"
)

// proxyTrap is the proxy in the environment of all tests. Only one test accepts
// its connections.
var proxyTrap net.Listener

// testNames resolves the names of all tests, so that no query leaves the machine.
// The addresses are those that the authors of the target list expect; 127.0.0.2
// replaces public addresses, together with newStandInGuard.
var testNames = fakenet.NewNames(map[string][]string{
	"example.com":              {"127.0.0.2"},
	"localhost":                {"127.0.0.1", "::1"},
	"localhost.localdomain":    {"127.0.0.1", "::1"},
	"localtest.me":             {"127.0.0.1", "::1"},
	"127.0.0.1.nip.io":         {"127.0.0.1"},
	"0x7f.0.0.1":               {"127.0.0.1"},
	"2130706433":               {"127.0.0.1"},
	"017700000001":             {"127.0.0.1"},
	"0":                        {"0.0.0.0"},
	"2852039166":               {"169.254.169.254"},
	"0251.0376.0251.0376":      {"169.254.169.254"},
	"metadata.google.internal": {"169.254.169.254"},
	"instance-data":            {"169.254.169.254"},
	"host.docker.internal":     {"172.17.0.1"},
	"rebind.test":              {"127.0.0.1"},
})

func TestMain(m *testing.M) {
	net.DefaultResolver = testNames.Resolver()
	var err error
	if proxyTrap, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		os.Setenv(name, "http://"+proxyTrap.Addr().String())
	}
	os.Unsetenv("NO_PROXY")
	os.Unsetenv("no_proxy")
	goleak.VerifyTestMain(m)
}

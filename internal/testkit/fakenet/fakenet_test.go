package fakenet_test

import (
	"errors"
	"net"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/internal/testkit/fakenet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNames(t *testing.T) {
	names := fakenet.NewNames(map[string][]string{"both.test": {"192.0.2.1", "2001:db8::1"}, "none.test": nil})
	lookup := func(name string) []string {
		addrs, err := names.Resolver().LookupHost(t.Context(), name)
		if dns, ok := errors.AsType[*net.DNSError](err); err != nil && (!ok || !dns.IsNotFound) {
			t.Errorf("%s: got %v, want an error for an unknown name", name, err)
		}
		slices.Sort(addrs)
		return addrs
	}
	for name, want := range map[string][]string{
		"both.test": {"192.0.2.1", "2001:db8::1"}, "BOTH.test.": {"192.0.2.1", "2001:db8::1"}, "none.test": nil, "other.test": nil,
	} {
		if got := lookup(name); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	names.Set("both.test", "192.0.2.2")
	if got := lookup("both.test"); !slices.Equal(got, []string{"192.0.2.2"}) {
		t.Errorf("got %v after Set, want the new address", got)
	}
}

func TestTrap(t *testing.T) {
	trap := fakenet.NewTrap(t)
	for want := range 3 {
		if got := trap.Caught(t); got != want {
			t.Errorf("got %d connections, want %d", got, want)
		}
		conn, err := net.Dial("tcp", "127.0.0.1:"+trap.Port)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
}

package visibility_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/visibility"
)

func TestFilterEntry_RemovesOtherTenants(t *testing.T) {
	entry := &contract.RegistryEntry{ID: "a", Requires: contract.Requires{Tenants: []string{"north", "south"}, Scopes: []string{"special"}}}
	for _, c := range []struct {
		name   string
		caller contract.Caller
		want   []string
	}{
		{"one of the tenants", contract.Caller{Tenant: "south", AllAgents: true}, []string{"south"}},
		{"another tenant", contract.Caller{Tenant: "west", AllAgents: true}, nil},
		{"no tenant", contract.Caller{AllAgents: true}, nil},
		{"administrator", contract.Caller{Tenant: "west", Scopes: []string{"admin"}}, []string{"north", "south"}},
	} {
		got := visibility.FilterEntry(entry, &c.caller)
		if diff := cmp.Diff(c.want, got.Requires.Tenants); diff != "" || len(got.Requires.Scopes) != 1 {
			t.Errorf("%s: tenants (-want +got), scopes %v:\n%s", c.name, got.Requires.Scopes, diff)
		}
	}
	if len(entry.Requires.Tenants) != 2 {
		t.Error("FilterEntry changed its argument")
	}
}

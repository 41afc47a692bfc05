package capabilities

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
)

// If an operator disables a registered agent, its labels and examples no longer affect the
// classification of requests.
func TestSnapshot_DoesNotLearnFromDisabledRegistrations(t *testing.T) {
	d, err := ParseDefinition("f.yaml", []byte("version: 1\nclients: {a: {match: {intent: [x], domains: [d]}, examples: {x: [hello]}}}\n"+
		"grants: {v: {intents: [y], domains: [d]}, w: {intents: [y], domains: [e]}}\n"))
	must(t, err)
	snapshot := func(disabled ...string) *Snapshot {
		t.Helper()
		next := *d
		next.Disabled = map[string]bool{}
		for _, id := range disabled {
			next.Disabled[id] = true
		}
		for _, id := range []string{"v", "w"} {
			r := contract.Registration{
				Match: contract.Match{Intent: []string{"y"}, Domains: d.Grants[id].Domains}, Examples: map[string][]string{"y": {"hello"}},
			}
			next.Agents = append(slices.Clip(next.Agents), r.Entry(id))
		}
		s, err := NewSnapshot(&next)
		must(t, err)
		return s
	}
	alone, err := NewSnapshot(d)
	must(t, err)
	both := snapshot("v", "w")
	if both.Catalogue.Version != alone.Catalogue.Version {
		t.Error("got another version for disabled registrations, want that of the file alone")
	}
	checkLabels(t, both.Catalogue, []string{"x"}, []string{"d"})
	checkLabels(t, snapshot("v").Catalogue, []string{"x", "y"}, []string{"d", "e"})
	checkLabels(t, snapshot("w").Catalogue, []string{"x", "y"}, []string{"d"})
	var ids []string
	for _, a := range snapshot("v").Catalogue.Learned {
		ids = append(ids, a.ID)
	}
	if diff := cmp.Diff([]string{"a", "w"}, ids); diff != "" {
		t.Errorf("learned (-want +got):\n%s", diff)
	}
	if file := snapshot("a"); len(file.Catalogue.Learned) != 3 {
		t.Error("got no examples of a disabled agent of the file, want them learned")
	}
}

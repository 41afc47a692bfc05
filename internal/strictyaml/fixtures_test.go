package strictyaml

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type words []string

// settings has a field of every kind.
type settings struct {
	Version int                `yaml:"version"`
	Name    string             `yaml:"name"`
	On      bool               `yaml:"on"`
	Ratio   float64            `yaml:"ratio"`
	Maybe   *float64           `yaml:"maybe"`
	Count   uint8              `yaml:"count"`
	Limits  limits             `yaml:"limits"`
	Clients map[string]limits  `yaml:"clients" synonym:"agents"`
	Words   words              `yaml:"words"`
	Lists   map[string][]int   `yaml:"lists"`
	Nested  []limits           `yaml:"nested"`
	Plain   string             // the key is "plain"
	Hidden  string             `yaml:"-"`
	Next    *settings          `yaml:"next"`
	Odd     map[string]float32 `yaml:"odd,omitempty"`
}

type limits struct {
	MaxTokens int      `yaml:"max_tokens"`
	Intents   []string `yaml:"intents"`
	Domains   []string `yaml:"domains"`
}

// checkErrors compares err, which must be Errors, with lines "line:column: detail"; no lines mean
// no error.
func checkErrors(t *testing.T, err error, want ...string) {
	t.Helper()
	var got []string
	if err != nil {
		list, ok := errors.AsType[Errors](err)
		if !ok {
			t.Fatalf("got error %T %v, want Errors", err, err)
		}
		for _, e := range list {
			if e.File != "f.yaml" {
				t.Errorf("got file %q in %v, want f.yaml", e.File, e)
			}
			e.File = ""
			got = append(got, e.Error())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

package strictyaml

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/caprouter/caprouter/internal/testkit"
)

// Parse the yaml-test-suite: no file panics, every error has a position, and invalid files are
// rejected, except for those that the underlying parser accepts although YAML 1.2 does not; none of
// them is read as another value.
func TestParse_YAMLTestSuite(t *testing.T) {
	lenient := []string{"9C9N", "9JBA", "CVW2", "DK95/01", "G5U8", "HRE5", "QB6E", "S98Z", "SU5Z", "X4QW", "Y79Y/003", "YJV2"}
	data, err := os.ReadFile(testkit.Shared(t, "corpora", "yaml-test-suite", "cases.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	cases, refused := 0, 0
	for line := range bytes.Lines(data) {
		var c struct {
			ID, YAML string
			Error    bool
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		cases++
		for _, v := range []any{new(settings), new(map[string]string), new([]string)} {
			err := Decode("f.yaml", []byte(c.YAML), v, ScalarOrList[words]())
			list, ok := err.(Errors)
			if err != nil && !ok {
				t.Errorf("%s: got error %T %v, want Errors", c.ID, err, err)
			}
			for i, e := range list {
				if i < MaxErrors && (e.Line < 1 || e.Column < 1) {
					t.Errorf("%s: got an error without a place: %v", c.ID, e)
				}
			}
		}
		d, err := Parse("f.yaml", []byte(c.YAML))
		switch {
		case err != nil || d.Err() != nil:
			refused++
		case c.Error && !slices.Contains(lenient, c.ID):
			t.Errorf("%s: got no error for %q", c.ID, c.YAML)
		}
	}
	if cases < 400 || refused < 94-len(lenient) {
		t.Errorf("got %d cases, %d of them rejected; want the whole suite", cases, refused)
	}
}

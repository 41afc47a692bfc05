package strictjson

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/testkit"
)

// Decode the JSONTestSuite as free-form data: y_ files are accepted, n_ files are rejected, i_
// files may be either, and no file panics.
func TestUnmarshal_JSONTestSuite(t *testing.T) {
	dir := testkit.Shared(t, "corpora", "JSONTestSuite", "test_parsing")
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[byte]int{}
	for _, path := range files {
		name := filepath.Base(path)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		counts[name[0]]++
		// RFC 8259 permits a reader to reject duplicate names, as this package does.
		wantRefused := name[0] == 'n' || strings.HasPrefix(name, "y_object_duplicated_key")
		for target, v := range map[string]any{"any": new(any), "raw": new(json.RawMessage), "map": new(map[string]json.RawMessage)} {
			for decoder, decode := range map[string]func([]byte, any) error{"own": Unmarshal, "foreign": UnmarshalAllowUnknown} {
				err := decode(data, v)
				if _, ok := errors.AsType[*Error](err); err != nil && !ok {
					t.Errorf("%s, %s into %s: got error %T, want *Error", name, decoder, target, err)
				}
				switch {
				case wantRefused && err == nil:
					t.Errorf("%s, %s into %s: got no error, want one", name, decoder, target)
				case name[0] == 'y' && !wantRefused && target != "map" && err != nil:
					t.Errorf("%s, %s into %s: got error %v, want none", name, decoder, target, err)
				}
			}
		}
	}
	if counts['y'] == 0 || counts['n'] == 0 || counts['i'] == 0 {
		t.Errorf("got %v files, want some of each kind", counts)
	}
}

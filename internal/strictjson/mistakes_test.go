package strictjson

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
)

func TestMistakes(t *testing.T) {
	for name, tt := range map[string]struct {
		body string
		want []string // pointers
	}{
		"several":          {`{"topk":3,"content":{"prompt":1,"x":{"y":[1,{"z":2}]}},"history":null,"options":{"dry_run":"yes"}}`, []string{"/topk", "/content/prompt", "/content/x", "/options/dry_run", "/history"}},
		"escaped names":    {`{"a/b":1,"~":2,"":3,"content":{}}`, []string{"/a~1b", "/~0", "/"}},
		"duplicates":       {`{"content":{"prompt":"a"},"content":{"prompt":"b"},"x":1}`, []string{"/content", "/x"}},
		"one":              {`{"content":{"prompt":"a"},"x":[{"y":{}}]}`, []string{"/x"}},
		"element":          {`{"history":[1,2],"x":1}`, []string{"/history/0"}},
		"the whole":        {`[]`, []string{""}},
		"syntax":           {`{"x":1,"y":}`, []string{"/x"}},
		"not JSON":         {`{"y":}`, []string{"/y"}},
		"too many":         {`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1}`, []string{"/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h", "/i", "/j"}},
		"a large document": {`{"a":1,"b":"` + strings.Repeat("b", maxMistakenDocSize) + `"}`, []string{"/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			req := new(contract.Request)
			first, ok := errors.AsType[*Error](Unmarshal([]byte(tt.body), req))
			if !ok {
				t.Fatal("got no error of the document")
			}
			var got []string
			for _, e := range Mistakes([]byte(tt.body), req, first) {
				got = append(got, e.Pointer)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

package rest

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/testkit"
)

// The files of the JSONTestSuite are sent as bodies, and as inputs in a valid body. n_ files must
// be rejected, y_ files accepted as inputs, and none may cause a server error.
func TestHandleRoute_JSONTestSuite(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testkit.Shared(t, "corpora", "JSONTestSuite", "test_parsing"), "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	core := &fakeBackend{}
	s := newServer(t, httpserver.Config{}, core)
	post := func(body string) int {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, localRequest("POST", "/api/v1/route", body))
		return w.Code
	}
	seen := map[byte]int{}
	for _, file := range files {
		name := filepath.Base(file)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		seen[name[0]]++
		if got := post(string(data)); got != 400 && got != 422 {
			t.Errorf("%s as a body: got %d, want 400 or 422", name, got)
		}
		got := post(`{"content":{"prompt":"p","inputs":{"x":` + string(data) + `}}}`)
		switch {
		case got != 200 && got != 400 && got != 422:
			t.Errorf("%s as an input: got %d, want 200, 400 or 422", name, got)
		case name[0] == 'n' && got == 200:
			t.Errorf("%s as an input: got it accepted", name)
		case name[0] == 'y' && got != 200 && !strings.HasPrefix(name, "y_object_duplicated_key"):
			t.Errorf("%s as an input: got %d, want 200", name, got)
		}
	}
	t.Logf("files: %d n_, %d y_, %d i_", seen['n'], seen['y'], seen['i'])
}

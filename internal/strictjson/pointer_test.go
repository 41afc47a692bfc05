package strictjson_test

import (
	"testing"

	"github.com/caprouter/caprouter/internal/strictjson"
)

func TestAppendPointer_EscapesNames(t *testing.T) {
	for _, tt := range []struct{ pointer, name, want string }{
		{"", "a", "/a"},
		{"/a", "b/c", "/a/b~1c"},
		{"/a", "~1", "/a/~01"},
		{"/a", "", "/a/"},
		{"/a", "ü €", "/a/ü €"},
	} {
		if got := strictjson.AppendPointer(tt.pointer, tt.name); got != tt.want {
			t.Errorf("%q of %q: got %q, want %q", tt.name, tt.pointer, got, tt.want)
		}
	}
}

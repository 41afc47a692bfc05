package strictjson_test

import (
	"testing"

	"github.com/caprouter/caprouter/internal/strictjson"
)

func TestPosition(t *testing.T) {
	const data = `{
  "servers": [
    {"id": "a", "env": {}},
    {
      "id": "b",
      "a/b": [1,
        2]
    }
  ],
  "aé": {"x": true}
}`
	tests := []struct {
		pointer      string
		line, column int
	}{
		{"", 1, 1},
		{"/servers", 2, 14},
		{"/servers/0", 3, 5},
		{"/servers/0/id", 3, 12},
		{"/servers/1", 4, 5},
		{"/servers/1/id", 5, 13},
		{"/servers/1/a~1b/1", 7, 9},
		{"/servers/1/none/deeper", 4, 5},
		{"/servers/2", 2, 14},
		{"/aé/x", 10, 15},
		{"/none", 1, 1},
	}
	for _, tt := range tests {
		if line, column := strictjson.Position([]byte(data), tt.pointer); line != tt.line || column != tt.column {
			t.Errorf("%q: got %d:%d, want %d:%d", tt.pointer, line, column, tt.line, tt.column)
		}
	}
}

package golden

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

const document = "../docs/golden.md"

// The document describes every key of a case and every outcome.
func TestDocs_DescribeAllFields(t *testing.T) {
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	row := func(name string) {
		if !strings.Contains(string(data), "| `"+name+"` |") {
			t.Errorf("%s: got no row for %s", document, name)
		}
	}
	for field := range reflect.TypeFor[Case]().Fields() {
		if key := field.Tag.Get("yaml"); key != "-" {
			row(key)
		}
	}
	for field := range reflect.TypeFor[Expect]().Fields() {
		row("expect." + field.Tag.Get("yaml"))
	}
	for _, outcome := range []Outcome{Dispatch, Clarify, FallbackA, FallbackB, FallbackC, AnyFallback} {
		row(string(outcome))
	}
}

// The examples in the document are valid.
func TestDocs_ExamplesAreValid(t *testing.T) {
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, m := range regexp.MustCompile("(?s)\n```yaml\n(cases:.*?)\n```\n").FindAllSubmatch(data, -1) {
		found++
		if _, err := ReadYAML(document, m[1], nil); err != nil {
			t.Error(err)
		}
	}
	if found < 3 {
		t.Errorf("got %d blocks of cases, want at least 3", found)
	}
}

package strictjson_test

import (
	"errors"
	"fmt"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

func ExampleUnmarshal() {
	for _, body := range []string{
		`{"content":{"prompt":"review this"}}`,
		`{"content":{"Prompt":"review this"}}`,
		`{"content":{"prompt":"review this","prompt":"and that"}}`,
		`{"content":{"prompt":null}}`,
		`{"content":{"prompt":"review this"}`,
	} {
		var request contract.Request
		err := strictjson.Unmarshal([]byte(body), &request)
		if e, ok := errors.AsType[*strictjson.Error](err); ok {
			fmt.Printf("pointer %q, JSON %v: %s\n", e.Pointer, !e.Syntax, e.Detail)
			continue
		}
		fmt.Println(request.Content.Prompt)
	}
	// Output:
	// review this
	// pointer "/content/Prompt", JSON true: unknown member "Prompt"; did you mean "prompt"?
	// pointer "/content/prompt", JSON true: name "prompt" appears more than once
	// pointer "/content/prompt", JSON true: must be a string, got null
	// pointer "", JSON false: is not JSON: the text ends too early at line 1, column 36
}

func ExampleValidate() {
	for _, d := range strictjson.Validate(contract.Request{Options: contract.Options{Mode: "later"}}) {
		fmt.Println(d.Pointer, d.Detail)
	}
	// Output:
	// /content/prompt is required
	// /options/mode must be one of sync, async
}

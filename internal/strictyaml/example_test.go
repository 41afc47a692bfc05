package strictyaml_test

import (
	"fmt"

	"github.com/caprouter/caprouter/internal/strictyaml"
)

func ExampleDecode() {
	var config struct {
		Listen string `yaml:"listen"`
		Limits struct {
			Burst int `yaml:"burst"`
		} `yaml:"limits"`
	}
	err := strictyaml.Decode("caprouter.yaml", []byte("listen: 8080\nlimits:\n  brust: 40\n"), &config)
	fmt.Println(err)
	// Output:
	// caprouter.yaml:1:9: must be text, got the number 8080; quote it: "8080"
	// caprouter.yaml:3:3: unknown key "brust"; did you mean "burst"?
}

// The caller checks the meaning of the values, and reports errors at their
// position.
func ExampleDocument_Errorf() {
	doc, err := strictyaml.Parse("caprouter.yaml", []byte("limits: {burst: 0}\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	var config struct {
		Limits map[string]int `yaml:"limits"`
	}
	_ = doc.Decode(&config) // Err returns this error as well
	if n := config.Limits["burst"]; n < 1 {
		doc.Errorf(strictyaml.At("limits", "burst"), "must be at least 1, got %d", n)
	}
	fmt.Println(doc.Err())
	// Output: caprouter.yaml:1:17: must be at least 1, got 0
}

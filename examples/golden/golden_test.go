package golden

import (
	"testing"

	"github.com/caprouter/caprouter/golden/goldentest"
)

func TestRouting(t *testing.T) {
	goldentest.Run(t, goldentest.Options{
		Registry: "../capabilities.yaml",
		Cases:    []string{"cases.yaml"},
	})
}

package lexical

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestFastExp checks that the fast exponential is close to the exact one.
func TestFastExp(t *testing.T) {
	for x := float32(-19.9); x <= 0; x += 0.01 {
		if got, want := float64(fastExp(x)), math.Exp(float64(x)); math.Abs(got-want) > 3e-4*want {
			t.Errorf("e^%v: got %v, want %v", x, got, want)
		}
	}
	if got := fastExp(-1000); got != 0 {
		t.Errorf("e^-1000: got %v, want 0", got)
	}
}

func TestFastLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float32Range(1e-7, 1).Draw(t, "x")
		if got, want := fastLog(x), math.Log(float64(x)); math.Abs(got-want) > 1e-9 {
			t.Errorf("log %v: got %v, want %v", x, got, want)
		}
	})
}

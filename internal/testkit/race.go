//go:build race

package testkit

// raceDetector reports whether the test is built with the race detector, which makes
// computations about ten times slower.
const raceDetector = true

//go:build race

package testkit

// RaceDetector reports whether the test is built with the race detector, which makes
// computations about ten times slower.
const RaceDetector = true

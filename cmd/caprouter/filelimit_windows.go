package main

// ignoreFileLimit does nothing, because Windows has no such signal.
func ignoreFileLimit() {}

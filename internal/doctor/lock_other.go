//go:build !unix

package doctor

import "os"

// isLocked always returns false, because this system offers no way to test a lock.
func isLocked(*os.File) bool { return false }

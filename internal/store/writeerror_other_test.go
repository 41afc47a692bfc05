//go:build !linux

package store_test

import "github.com/caprouter/caprouter/internal/store"

// exceedFileSizeLimit is not called: TestStore_RecoversFromWriteErrors runs only on Linux.
func exceedFileSizeLimit(*store.Store) int { return 2 }

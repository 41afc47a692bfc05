//go:build !linux

package store_test

import "github.com/caprouter/caprouter/internal/store"

// exceedFileSizeLimit needs Linux: TestStore_RecoversFromWriteErrors does not exist here.
func exceedFileSizeLimit(*store.Store) int { return 2 }

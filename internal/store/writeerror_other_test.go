//go:build !linux

package store_test

import "github.com/caprouter/caprouter/internal/store"

// meetLimit is for Linux alone: TestStore_RecoversFromWriteErrors is not here.
func meetLimit(*store.Store) int { return 2 }

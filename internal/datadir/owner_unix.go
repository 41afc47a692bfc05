//go:build unix

package datadir

import (
	"io/fs"
	"syscall"
)

const (
	hasModes = true
	noFollow = syscall.O_NOFOLLOW
)

// ownerOf returns the user id of a file's owner.
func ownerOf(info fs.FileInfo) (uid int, known bool) {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return int(stat.Uid), true
}

// countNames returns the number of a file's names (hard links).
func countNames(info fs.FileInfo) uint64 {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 1
	}
	return uint64(stat.Nlink) //nolint:unconvert // of other types on other systems
}

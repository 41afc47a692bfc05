//go:build unix

package store

import "golang.org/x/sys/unix"

// FreeSpace is how much this process may still write to the disk of dir.
func FreeSpace(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // of other types on other systems
}

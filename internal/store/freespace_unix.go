//go:build unix

package store

import "golang.org/x/sys/unix"

// FreeSpace returns the free space of the file system of dir.
func FreeSpace(dir string) (Space, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Space{}, err
	}
	free := Space{Bytes: int64(st.Bavail) * int64(st.Bsize), Files: -1} //nolint:unconvert // of other types on other systems
	if st.Files > 0 {
		free.Files = int64(st.Ffree)
	}
	return free, nil
}

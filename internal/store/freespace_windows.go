package store

import "golang.org/x/sys/windows"

// FreeSpace returns the free space of the file system of dir.
func FreeSpace(dir string) (Space, error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return Space{}, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(path, &free, nil, nil); err != nil {
		return Space{}, err
	}
	return Space{Bytes: int64(free), Files: -1}, nil
}

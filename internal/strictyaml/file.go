package strictyaml

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// ReadFile reads a file of at most MaxBytes. A larger one is refused before it
// is read, and one that grows meanwhile when it gets there; so is anything that
// is not a regular file. A file it cannot take is Errors; one the system does
// not give is the system's error.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path) // before it is opened: to open a pipe may wait for ever
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, Errors{{File: path, Detail: "is not a regular file"}}
	}
	if info.Size() > MaxBytes {
		return nil, fileTooLarge(path, fmt.Sprintf("is %d bytes long", info.Size()))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var data bytes.Buffer
	data.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := data.ReadFrom(io.LimitReader(f, MaxBytes+1)); err != nil {
		return nil, err
	}
	if data.Len() > MaxBytes {
		return nil, fileTooLarge(path, "grows while it is read")
	}
	return data.Bytes(), nil
}

func fileTooLarge(path, what string) Errors {
	return Errors{{File: path, Detail: fmt.Sprintf("%s; at most %d are read", what, MaxBytes)}}
}

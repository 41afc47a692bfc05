package strictyaml

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// ReadFile reads a regular file of at most MaxBytes. If the file is larger, grows
// beyond the limit while it is read, or is not a regular file, the error is Errors;
// otherwise it is the error of the operating system.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path) // before os.Open, which may block on a pipe
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
		return nil, fileTooLarge(path, "grew while it was read")
	}
	return data.Bytes(), nil
}

func fileTooLarge(path, what string) Errors {
	return Errors{{File: path, Detail: fmt.Sprintf("%s; at most %d are read", what, MaxBytes)}}
}

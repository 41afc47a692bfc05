// Package datadir guards the data directory: it opens the files in it only if no
// other user can have placed or replaced them, and refuses a directory whose format
// this program does not know. Files are opened without following symbolic links, and
// written atomically and durably.
//
//	used, err := datadir.Prepare(dir, engine) // checks it, and marks or converts an older one
//	f, err := datadir.OpenFile(path, os.O_RDWR|os.O_CREATE)
//	err = datadir.WriteFile(path, path+".tmp", content)
//	err = datadir.Complete(dir, engine)    // everything that a new directory needs is in it
//
// The content of a file belongs to the package that opens it.
package datadir

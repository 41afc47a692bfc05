package localfile

// tryLockDir does nothing, because Windows cannot lock directories.
func tryLockDir(string) (unlock func(), ok bool) { return func() {}, true }

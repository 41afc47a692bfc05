package config

import "github.com/caprouter/caprouter/internal/contentkey"

// OpenKeys returns the keys of the stored contents, and creates the default file in
// dataDir if it is missing. The caller holds the lock of the data directory.
func (c *Encryption) OpenKeys(dataDir string, lookup func(string) (string, bool)) (*contentkey.Keyring, error) {
	return c.readKeys(lookup, func() (*contentkey.Keyring, error) { return contentkey.OpenOrCreate(dataDir) })
}

// OpenExistingKeys is OpenKeys, but returns an error if the default file is missing.
func (c *Encryption) OpenExistingKeys(dataDir string, lookup func(string) (string, bool)) (*contentkey.Keyring, error) {
	return c.readKeys(lookup, func() (*contentkey.Keyring, error) { return contentkey.OpenExisting(dataDir) })
}

func (c *Encryption) readKeys(
	lookup func(string) (string, bool), readDefault func() (*contentkey.Keyring, error),
) (*contentkey.Keyring, error) {
	switch {
	case c.KeyFile != "":
		return contentkey.OpenFile(c.KeyFile)
	case c.KeyEnv != "":
		text, _ := lookup(c.KeyEnv)
		return contentkey.Parse(text, "the variable "+c.KeyEnv+" (store.encryption.key_env)")
	}
	return readDefault()
}

// ContentKeys returns the keys of stored contents for a command that reads the files of a
// data directory. They are configured by variables, or are in the directory.
func ContentKeys(dataDir string, lookupEnv func(string) (string, bool)) (*contentkey.Keyring, error) {
	var cfg Config
	if err := applyEnv(&cfg, lookupEnv); err != nil {
		return nil, err
	}
	return cfg.Store.Encryption.OpenExistingKeys(dataDir, lookupEnv)
}

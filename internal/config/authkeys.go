package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/internal/auth"
)

// StaticKeys reads the keys that the configuration names. Errors contain the id of the key and
// never a secret.
func (c *Auth) StaticKeys(lookup func(string) (string, bool)) ([]auth.StaticKey, error) {
	var (
		keys []auth.StaticKey
		errs []error
	)
	for i := range c.Keys {
		k := &c.Keys[i]
		material, err := k.readMaterial(lookup)
		if err == nil {
			var key auth.StaticKey
			key, err = auth.NewStaticKey(k.KID, k.Alg, material)
			if err == nil && k.Issuer != "" {
				key, err = key.ForIssuer(k.Issuer)
			}
			if err == nil {
				keys = append(keys, key)
				continue
			}
		}
		errs = append(errs, fmt.Errorf("auth.keys[%d] (%s): %w", i, k.KID, err))
	}
	return keys, errors.Join(errs...)
}

func (k *Key) readMaterial(lookup func(string) (string, bool)) ([]byte, error) {
	switch {
	case k.PublicKeyFile != "":
		return auth.ReadPublicKeyFile(k.PublicKeyFile)
	case k.SecretFile != "":
		return auth.ReadSecretFile(k.SecretFile)
	}
	secret, ok := lookup(k.SecretEnv)
	if !ok || strings.TrimSpace(secret) == "" {
		return nil, fmt.Errorf("environment variable %s is empty: put the secret there, `openssl rand -base64 48` makes one", k.SecretEnv)
	}
	return []byte(secret), nil
}

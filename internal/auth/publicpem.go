package auth

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// parsePublicPEM decodes a file that contains exactly one public key.
func parsePublicPEM(data []byte) (any, error) {
	var blocks []*pem.Block
	rest := data
	for block, after := pem.Decode(rest); block != nil; block, after = pem.Decode(rest) {
		blocks, rest = append(blocks, block), after
	}
	for _, b := range blocks {
		if strings.Contains(b.Type, "PRIVATE KEY") {
			return nil, errors.New("the file contains a private key, which only the signer of tokens may have: " +
				"put the public one there (openssl pkey -in private.pem -pubout)")
		}
	}
	switch {
	case len(blocks) != 1 || strings.TrimSpace(string(rest)) != "" || !strings.HasPrefix(strings.TrimSpace(string(data)), "-----BEGIN "):
		return nil, errors.New(`it is not exactly one PEM block of type "PUBLIC KEY"`)
	case blocks[0].Type == "CERTIFICATE":
		return nil, errors.New("it is a certificate: put its key there (openssl x509 -in cert.pem -pubkey -noout)")
	case blocks[0].Type == "RSA PUBLIC KEY":
		return nil, errors.New("it is in the older form of RSA keys: convert it (openssl rsa -RSAPublicKey_in -in key.pem -pubout)")
	case blocks[0].Type != "PUBLIC KEY":
		return nil, fmt.Errorf(`it is a PEM block of type %q, not "PUBLIC KEY"`, blocks[0].Type)
	}
	public, err := x509.ParsePKIXPublicKey(blocks[0].Bytes)
	if err != nil {
		return nil, errors.New("the PEM block holds no public key that can be read")
	}
	return public, nil
}

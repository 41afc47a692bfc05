package agentkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// TokenSource returns the token that identifies the agent at the router. It is
// called before each request, and once more if the router rejects the token, so that
// a rotated token is used at once. It must be safe for concurrent use.
type TokenSource = func(ctx context.Context) (string, error)

// TokenFile returns the source of a token in a file. White space around the token is
// ignored. To rotate the token, replace the file: write a new one and rename it.
func TokenFile(path string) TokenSource {
	return func(context.Context) (string, error) {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("token: %w", err)
		}
		token := strings.TrimSpace(string(text))
		if err := checkToken(token); err != nil {
			return "", fmt.Errorf("token file %s: %w", path, err)
		}
		return token, nil
	}
}

// TokenEnv returns the source of a token in an environment variable.
func TokenEnv(name string) TokenSource {
	return func(context.Context) (string, error) {
		token := strings.TrimSpace(os.Getenv(name))
		if err := checkToken(token); err != nil {
			return "", fmt.Errorf("token in the variable %s: %w", name, err)
		}
		return token, nil
	}
}

// checkToken rejects text that cannot be a bearer token. The error does not contain
// the text.
func checkToken(token string) error {
	switch {
	case token == "":
		return errors.New("it is empty")
	case len(token) > maxTokenBytes:
		return fmt.Errorf("longer than %d bytes", maxTokenBytes)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("it has spaces, line breaks or other invalid characters")
	}
	return nil
}

// anonymous is the TokenSource for a router that does not authenticate callers.
func anonymous(context.Context) (string, error) { return "", nil }

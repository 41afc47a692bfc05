package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// identifying are the kinds of personal data that identify a person or an account alone.
var identifying = []string{redact.Card, redact.IBAN, redact.SSN, redact.CPF, redact.CNPJ, redact.NIF, redact.DNI}

// maskAll masks every kind, so that nothing is restored.
var maskAll = contract.DataClasses{"none"}

// scanner finds secrets and personal data. It is safe for concurrent use.
type scanner struct{ secrets, personal *redact.Redactor }

func newScanner() (*scanner, error) {
	secrets, err := redact.New(redact.Config{Kinds: []string{redact.Secret}})
	if err != nil {
		return nil, err
	}
	personal, err := redact.New(redact.Config{Kinds: slices.Concat(identifying, []string{redact.Email, redact.Phone})})
	return &scanner{secrets, personal}, err
}

// hasSecret reports whether a text contains a secret.
func (s *scanner) hasSecret(text string) bool {
	m := s.secrets.StartMasking()
	m.MaskText(text)
	return len(m.Kinds()) > 0
}

// memberIsSecret reports whether the value of a member is a secret because of its name.
func (s *scanner) memberIsSecret(name, text string) bool {
	raw, err := strictjson.Marshal(text)
	if err != nil || name == "" {
		return false
	}
	m := s.secrets.StartMasking()
	m.MaskMember(name, raw, maskAll)
	return len(m.Kinds()) > 0
}

// personalKinds returns the kinds of personal data in a text.
func (s *scanner) personalKinds(text string) []string {
	m := s.personal.StartMasking()
	m.MaskText(text)
	return m.Kinds()
}

// secretValues returns the secrets in a JSON value.
func (s *scanner) secretValues(raw json.RawMessage) []string {
	m := s.secrets.StartMasking()
	m.MaskJSON(raw, maskAll)
	return restoreAll(m)
}

// secretsOfText returns the secrets in a text.
func (s *scanner) secretsOfText(text string) []string {
	m := s.secrets.StartMasking()
	m.MaskText(text)
	return restoreAll(m)
}

// maxKnownSecrets bounds the secrets of one JSON value.
const maxKnownSecrets = 256

// restoreAll returns the values that were masked.
func restoreAll(m *redact.Masking) []string {
	var values []string
	for n := 1; n <= maxKnownSecrets; n++ {
		placeholder := fmt.Sprintf("[SECRET_%d]", n)
		value := m.RestoreText(placeholder, nil)
		if value == placeholder {
			break
		}
		values = append(values, value)
	}
	return values
}

// Lengths, in letters and digits, for parts of secrets.
const (
	minSecret     = 8  // shorter ones appear by chance
	secretPart    = 12 // a part of this length is the secret
	secretPiece   = 6  // pieces over arguments and steps
	minPieceShare = 60 // percent of the secret that pieces must cover
)

// maxSecrets and maxSecretLength bound the secrets of the outputs of a run.
const (
	maxSecrets      = 256
	maxSecretLength = 1 << 10
)

// knownSecrets are the secrets in earlier outputs and in env_context, normalized, each also
// reversed and with rotated letters.
type knownSecrets struct {
	forms []string
	parts map[string]bool // every part of secretPart bytes
	short []string        // forms that are shorter
}

func (k *knownSecrets) add(value string) {
	plain := normalize(value)
	plain = plain[:min(len(plain), maxSecretLength)]
	if len(plain) < minSecret || len(k.forms) >= 3*maxSecrets || slices.Contains(k.forms, plain) {
		return
	}
	if k.parts == nil {
		k.parts = map[string]bool{}
	}
	for _, form := range []string{plain, reverse(plain), rotate(plain)} {
		k.forms = append(k.forms, form)
		if len(form) < secretPart {
			k.short = append(k.short, form)
		}
		for i := 0; i+secretPart <= len(form); i++ {
			k.parts[form[i:i+secretPart]] = true
		}
	}
}

// isIn reports whether a normalized text contains a secret or a part of one.
func (k *knownSecrets) isIn(text string) bool {
	if slices.ContainsFunc(k.short, func(form string) bool { return strings.Contains(text, form) }) {
		return true
	}
	for i := 0; len(k.parts) > 0 && i+secretPart <= len(text); i++ {
		if k.parts[text[i:i+secretPart]] {
			return true
		}
	}
	return false
}

// maxJoinedText bounds the text in which pieces of secrets are looked for.
const maxJoinedText = 256 << 10

// isCompleted reports whether pieces of a secret in all texts cover most of it, and some of
// them end in the last one.
func (k *knownSecrets) isCompleted(earlier, last string) bool {
	if len(k.forms) == 0 {
		return false
	}
	earlier = earlier[max(0, len(earlier)-maxJoinedText):]
	all := earlier + last[:min(len(last), maxJoinedText)]
	pieces := map[string]int{} // piece → the last position at which it ends
	for i := 0; i+secretPiece <= len(all); i++ {
		pieces[all[i:i+secretPiece]] = i + secretPiece
	}
	for _, form := range k.forms {
		covered, end, contributes := 0, 0, false // bytes, end of the last piece
		for i := 0; i+secretPiece <= len(form); i++ {
			at, ok := pieces[form[i:i+secretPiece]]
			if !ok {
				continue
			}
			contributes = contributes || at > len(earlier)
			covered += i + secretPiece - max(end, i)
			end = i + secretPiece
		}
		if contributes && covered*100 >= minPieceShare*len(form) {
			return true
		}
	}
	return false
}

func reverse(text string) string {
	runes := []rune(text)
	slices.Reverse(runes)
	return string(runes)
}

// rotate applies ROT13 to lower-case letters.
func rotate(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return 'a' + (r-'a'+13)%26
		}
		return r
	}, text)
}

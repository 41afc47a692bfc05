package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/internal/strictyaml"
)

// EnvPrefix is the prefix of the environment variables of configuration keys: for
// example, dispatch.timeout_ms is CAPROUTER_DISPATCH_TIMEOUT_MS.
const EnvPrefix = "CAPROUTER"

// applyEnv sets every key whose variable is set, also if the value is empty.
func applyEnv(cfg *Config, lookup func(string) (string, bool)) error {
	if lookup == nil {
		return nil
	}
	return forEachKey(reflect.ValueOf(cfg).Elem(), EnvPrefix, func(name string, key reflect.Value) error {
		if text, ok := lookup(name); ok {
			if err := setScalar(key, text); err != nil {
				return fmt.Errorf("environment %s: %w", name, err)
			}
		}
		return nil
	})
}

// forEachKey calls do for every key of a configuration with the name of its variable.
func forEachKey(section reflect.Value, prefix string, do func(name string, key reflect.Value) error) error {
	for field, value := range section.Fields() {
		name := prefix + "_" + strings.ToUpper(field.Tag.Get("yaml"))
		var err error
		if value.Kind() == reflect.Struct {
			err = forEachKey(value, name, do)
		} else {
			err = do(name, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// envNames returns the names of the variables of all keys.
func envNames() (names []string) {
	_ = forEachKey(reflect.ValueOf(Config{}), EnvPrefix, func(name string, _ reflect.Value) error {
		names = append(names, name)
		return nil
	})
	return names
}

// UnknownEnvNames returns the names in environ (NAME=value) that have the prefix but are
// not keys, so that a misspelt key is noticed. CAPROUTER_URL and CAPROUTER_CONFIG are
// read by commands, and the configuration names the variables of secrets.
func UnknownEnvNames(cfg *Config, environ []string) []string {
	known := map[string]bool{
		EnvPrefix + "_URL": true, EnvPrefix + "_CONFIG": true,
		cfg.Store.Encryption.KeyEnv: true, cfg.Tickets.Webhook.SecretEnv: true, cfg.LLM.APIKeyEnv: true,
	}
	for i := range cfg.Auth.Keys {
		known[cfg.Auth.Keys[i].SecretEnv] = true
	}
	for _, name := range envNames() {
		known[name] = true
	}
	var unknown []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, EnvPrefix+"_") && !known[name] {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// NearestEnvName returns the variable of a key that is most similar to the name, "" if none
// is.
func NearestEnvName(name string) string {
	names := envNames()
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], EnvPrefix)
	}
	if near := strictyaml.Nearest(strings.TrimPrefix(name, EnvPrefix), names); near != "" {
		return EnvPrefix + near
	}
	return ""
}

func setScalar(field reflect.Value, text string) error {
	switch field.Kind() {
	case reflect.String:
		field.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is not true or false", text)
		}
		field.SetBool(b)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		field.SetFloat(f)
	case reflect.Slice:
		if field.Type().Elem().Kind() != reflect.String {
			return errors.New("a list of sections can only be written in the file")
		}
		words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
		list := reflect.MakeSlice(field.Type(), len(words), len(words))
		for i, w := range words {
			list.Index(i).SetString(w)
		}
		field.Set(list)
	case reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		field.SetInt(int64(n))
	default:
		return fmt.Errorf("keys of kind %s cannot be set by environment", field.Kind())
	}
	return nil
}

package app

import (
	"cmp"
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

// unknownEnvNames returns the names in environ (NAME=value) that have the prefix but are
// not keys, so that a misspelt key is noticed. CAPROUTER_URL and CAPROUTER_CONFIG are
// read by commands, and the configuration names the variables of secrets.
func unknownEnvNames(cfg *Config, environ []string) []string {
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

// nearestEnvName returns the variable of a key that is most similar to the name, "" if none
// is.
func nearestEnvName(name string) string {
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

// applyOTelEnv sets the keys whose variables OpenTelemetry defines. The exporter reads
// the other ones, such as OTEL_EXPORTER_OTLP_HEADERS.
func applyOTelEnv(c *TelemetryConfig, lookup func(string) (string, bool)) error {
	if lookup == nil {
		return nil
	}
	value := func(name string) string { // an empty variable counts as one that is not set
		if text, ok := lookup(name); ok {
			return text
		}
		return ""
	}
	if base := strings.TrimSuffix(value("OTEL_EXPORTER_OTLP_ENDPOINT"), "/"); base != "" {
		c.OTLPEndpoint = base + tracesPath
	}
	if endpoint := value("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); endpoint != "" {
		c.OTLPEndpoint = endpoint
	}
	if strings.EqualFold(value("OTEL_SDK_DISABLED"), "true") || value("OTEL_TRACES_EXPORTER") == "none" {
		c.OTLPEndpoint = ""
	}
	protocol := cmp.Or(value("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), value("OTEL_EXPORTER_OTLP_PROTOCOL"))
	if c.OTLPEndpoint != "" && protocol != "" && !strings.HasPrefix(protocol, "http/") {
		return fmt.Errorf("environment OTEL_EXPORTER_OTLP_PROTOCOL: %q is not supported: use http/protobuf, which receivers expect on port 4318", protocol)
	}
	return c.setSampler(value("OTEL_TRACES_SAMPLER"), value("OTEL_TRACES_SAMPLER_ARG"))
}

// setSampler sets the ratio of a sampler of OpenTelemetry. Callers that have decided
// whether to record a trace have precedence over each of them.
func (c *TelemetryConfig) setSampler(name, arg string) error {
	switch strings.TrimPrefix(name, "parentbased_") {
	case "":
	case "always_on":
		c.TraceRatio = 1
	case "always_off":
		c.TraceRatio = 0
	case "traceidratio":
		ratio, err := strconv.ParseFloat(cmp.Or(arg, "1"), 64)
		if err != nil {
			return fmt.Errorf("environment OTEL_TRACES_SAMPLER_ARG: %q is not a number", arg)
		}
		c.TraceRatio = ratio
	default:
		return fmt.Errorf("environment OTEL_TRACES_SAMPLER: %q is not known: use parentbased_traceidratio, parentbased_always_on or parentbased_always_off", name)
	}
	return nil
}

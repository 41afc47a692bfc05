package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/internal/egress"
)

// Telemetry configures the log and tracing.
type Telemetry struct {
	LogLevel     string  `yaml:"log_level" validate:"oneof=debug info warn error"` // debug, info, warn or error
	OTLPEndpoint string  `yaml:"otlp_endpoint"`                                    // URL of an OTLP/HTTP receiver of spans; "" = no tracing
	TraceRatio   float64 `yaml:"trace_ratio"`                                      // part of the traces to record that callers do not decide about, 0 to 1
}

func (c *Telemetry) validate() error {
	var errs error
	if !(c.TraceRatio >= 0 && c.TraceRatio <= 1) {
		errs = fmt.Errorf("telemetry.trace_ratio is %v: write the part of the traces to record, from 0 to 1 (0.01)", c.TraceRatio)
	}
	if c.OTLPEndpoint == "" {
		return errs
	}
	u, err := url.Parse(c.OTLPEndpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		err = errors.New("telemetry.otlp_endpoint: is not an http or https URL: write the address of a receiver of OTLP over HTTP, for example http://127.0.0.1:4318")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		err = errors.New("telemetry.otlp_endpoint: must not contain a user, a query or a fragment: set credentials with OTEL_EXPORTER_OTLP_HEADERS")
	}
	return errors.Join(errs, err)
}

// tracesPath is the path of an OTLP receiver for spans.
const tracesPath = "/v1/traces"

// TracesURL returns the address for spans, "" for none.
func (c *Telemetry) TracesURL() string {
	if u, err := url.Parse(c.OTLPEndpoint); err == nil && c.OTLPEndpoint != "" && u.Path == "" {
		return c.OTLPEndpoint + tracesPath
	}
	return c.OTLPEndpoint
}

// CheckHeaders refuses to send credentials over plain http to another machine.
func (c *Telemetry) CheckHeaders(allowPlain bool, lookup func(string) (string, bool)) error {
	u, err := url.Parse(c.OTLPEndpoint)
	if err != nil || u.Scheme != "http" || egress.IsLoopback(u.Hostname()) || allowPlain {
		return nil //nolint:nilerr // validate has checked the URL
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		if value, ok := lookup(name); ok && value != "" {
			return fmt.Errorf("telemetry.otlp_endpoint: the headers of %s would leave this machine without encryption: use https, or set dispatch.allow_plain_http", name)
		}
	}
	return nil
}

// applyOTelEnv sets the keys whose variables OpenTelemetry defines. The exporter reads
// the other ones, such as OTEL_EXPORTER_OTLP_HEADERS.
func applyOTelEnv(c *Telemetry, lookup func(string) (string, bool)) error {
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
func (c *Telemetry) setSampler(name, arg string) error {
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

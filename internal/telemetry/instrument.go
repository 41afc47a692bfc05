package telemetry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// eventCounter counts events by the value of one label.
type eventCounter struct {
	instrument metric.Int64Counter
	label      labelOptions[metric.AddOption]
}

func (c *eventCounter) add(value string) {
	c.instrument.Add(context.Background(), 1, c.label.forValue(value)...)
}

// durationTimer records durations by the value of one label.
type durationTimer struct {
	instrument metric.Float64Histogram
	label      labelOptions[metric.RecordOption]
}

func (t *durationTimer) record(value string, took time.Duration) {
	t.instrument.Record(context.Background(), took.Seconds(), t.label.forValue(value)...)
}

// durationBuckets returns histogram bounds in seconds, from a lexical
// classification (tens of microseconds) to a task of minutes.
func durationBuckets() []float64 {
	return []float64{
		0.00001, 0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
		0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
	}
}

// instrumentFactory creates instruments and collects the errors, so that the caller
// checks them once.
type instrumentFactory struct {
	meter metric.Meter
	err   error
}

func (mk *instrumentFactory) addError(name string, err error) {
	if err != nil {
		mk.err = errors.Join(mk.err, fmt.Errorf("create metric %s: %w", name, err))
	}
}

// newCounter creates a counter with all its series, so that a rate is 0 before the
// first event instead of absent.
func (mk *instrumentFactory) newCounter(name, help, labelName string, values []string) eventCounter {
	instrument, err := mk.meter.Int64Counter(name, metric.WithDescription(help))
	mk.addError(name, err)
	c := eventCounter{instrument, newLabelOptions(labelName, values, func(o metric.MeasurementOption) metric.AddOption { return o })}
	if err == nil {
		for _, options := range c.label.known {
			instrument.Add(context.Background(), 0, options...)
		}
	}
	return c
}

func (mk *instrumentFactory) newHistogram(name, help string) metric.Float64Histogram {
	instrument, err := mk.meter.Float64Histogram(name, metric.WithDescription(help),
		metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(durationBuckets()...))
	mk.addError(name, err)
	return instrument
}

// newShareHistogram creates a histogram of values from 0 to 1.
func (mk *instrumentFactory) newShareHistogram(name, help string) metric.Float64Histogram {
	instrument, err := mk.meter.Float64Histogram(name, metric.WithDescription(help),
		metric.WithExplicitBucketBoundaries(0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1))
	mk.addError(name, err)
	return instrument
}

func (mk *instrumentFactory) newTimer(name, help, labelName string, values []string) durationTimer {
	return durationTimer{
		mk.newHistogram(name, help),
		newLabelOptions(labelName, values, func(o metric.MeasurementOption) metric.RecordOption { return o }),
	}
}

// newGauge creates a gauge that calls now at each scrape.
func (mk *instrumentFactory) newGauge(name, help string, now func() int64) {
	_, err := mk.meter.Int64ObservableGauge(name, metric.WithDescription(help),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(now())
			return nil
		}))
	mk.addError(name, err)
}

// newGaugeByLabel creates a gauge with one label. At each scrape, now observes the
// values of the label, of which there must be few.
func (mk *instrumentFactory) newGaugeByLabel(name, help, labelName string, now func(observe func(value string, n int64))) {
	_, err := mk.meter.Int64ObservableGauge(name, metric.WithDescription(help),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			now(func(value string, n int64) { o.Observe(n, metric.WithAttributes(attribute.String(labelName, value))) })
			return nil
		}))
	mk.addError(name, err)
}

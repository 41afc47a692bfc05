package telemetry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// counter counts events by the value of one label.
type counter struct {
	instrument metric.Int64Counter
	label      labelled[metric.AddOption]
}

func (c *counter) add(value string) {
	c.instrument.Add(context.Background(), 1, c.label.options(value)...)
}

// timer records durations by the value of one label.
type timer struct {
	instrument metric.Float64Histogram
	label      labelled[metric.RecordOption]
}

func (t *timer) record(value string, took time.Duration) {
	t.instrument.Record(context.Background(), took.Seconds(), t.label.options(value)...)
}

// buckets reach from a lexical classification (tens of microseconds) to an
// agent that works for minutes.
func buckets() []float64 {
	return []float64{
		0.00001, 0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
		0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
	}
}

// maker makes instruments and collects what goes wrong, so that a list of
// instruments reads as a list.
type maker struct {
	meter metric.Meter
	err   error
}

func (mk *maker) note(name string, err error) {
	if err != nil {
		mk.err = errors.Join(mk.err, fmt.Errorf("make metric %s: %w", name, err))
	}
}

// counter makes a counter and all its series, so that a rate is 0, and not
// absent, before the first event.
func (mk *maker) counter(name, help, labelName string, values []string) counter {
	instrument, err := mk.meter.Int64Counter(name, metric.WithDescription(help))
	mk.note(name, err)
	c := counter{instrument, label(labelName, values, func(o metric.MeasurementOption) metric.AddOption { return o })}
	if err == nil {
		for _, options := range c.label.known {
			instrument.Add(context.Background(), 0, options...)
		}
	}
	return c
}

func (mk *maker) histogram(name, help string) metric.Float64Histogram {
	instrument, err := mk.meter.Float64Histogram(name, metric.WithDescription(help),
		metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(buckets()...))
	mk.note(name, err)
	return instrument
}

// shares makes a histogram of values from 0 to 1.
func (mk *maker) shares(name, help string) metric.Float64Histogram {
	instrument, err := mk.meter.Float64Histogram(name, metric.WithDescription(help),
		metric.WithExplicitBucketBoundaries(0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1))
	mk.note(name, err)
	return instrument
}

func (mk *maker) timer(name, help, labelName string, values []string) timer {
	return timer{
		mk.histogram(name, help),
		label(labelName, values, func(o metric.MeasurementOption) metric.RecordOption { return o }),
	}
}

// gauge makes a gauge whose value is asked for at each scrape.
func (mk *maker) gauge(name, help string, now func() int64) {
	_, err := mk.meter.Int64ObservableGauge(name, metric.WithDescription(help),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(now())
			return nil
		}))
	mk.note(name, err)
}

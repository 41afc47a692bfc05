package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/internal/redact"
)

// Classifier specifies how requests are classified.
type Classifier struct {
	Mode           string  `yaml:"mode" validate:"oneof=auto llm cascade lexical"` // auto, llm, cascade or lexical; auto = llm with a model, else lexical
	TimeoutMS      int     `yaml:"timeout_ms" validate:"range=1 60000"`            // for all calls of the model for one request
	ShortlistAbove int     `yaml:"shortlist_above" validate:"range=1 10000"`       // number of agents above which the model sees only a shortlist
	ShortlistK     int     `yaml:"shortlist_k" validate:"range=1 1000"`            // agents on the shortlist
	Cache          Cache   `yaml:"cache"`
	Cascade        Cascade `yaml:"cascade"`
}

// Cache bounds the cache of classifications by a model.
type Cache struct {
	Entries int `yaml:"entries" validate:"range=0 1000000"` // 0 = no cache
	TTLS    int `yaml:"ttl_s" validate:"range=1 86400"`
}

// Cascade specifies when the lexical classifier is confident enough, so that the
// model is not called.
type Cascade struct {
	Accept AcceptThreshold `yaml:"accept"`
}

// AcceptThreshold is a confidence from 0 to 1, or "auto": the threshold of the
// calibration. If the lexical classifier is not calibrated, "auto" accepts nothing.
type AcceptThreshold string

// AcceptAuto is the value of classifier.cascade.accept for the calibrated threshold.
const AcceptAuto = "auto"

// Parse returns the least accepted confidence, or auto.
func (a AcceptThreshold) Parse() (least float64, auto bool, err error) {
	if a == AcceptAuto {
		return 0, true, nil
	}
	v, err := strconv.ParseFloat(string(a), 64)
	if err != nil || !(v >= 0 && v <= 1) { // also refuses NaN
		return 0, false, fmt.Errorf("classifier.cascade.accept: must be auto or a confidence from 0 to 1, got %q", string(a))
	}
	return max(v, math.SmallestNonzeroFloat64), false, nil // for the classifier, 0 means not set
}

func (c *Classifier) validate() error {
	_, _, err := c.Cascade.Accept.Parse()
	return err
}

func defaultClassifierConfig() Classifier {
	return Classifier{
		Mode: classifier.ModeAuto, TimeoutMS: 2000, ShortlistAbove: 20, ShortlistK: 10,
		Cache: Cache{Entries: 10_000, TTLS: 300}, Cascade: Cascade{Accept: AcceptAuto},
	}
}

// Redact specifies the personal data and secrets that are masked before a model
// or a log receives them.
type Redact struct {
	Kinds StringList `yaml:"kinds"` // "default" = all kinds, "none", or a list
	Allow []string   `yaml:"allow"` // values that are never masked
}

// StringList is a list that may be written as one word.
type StringList []string

// The values of redact.kinds beside a list of kinds.
const (
	KindsDefault = "default" // all kinds
	KindsNone    = "none"    // nothing is masked
)

// RedactorConfig returns the configuration of the redactor. Only the word "none" masks
// nothing; an empty list is a mistake, which validate reports.
func (c *Redact) RedactorConfig() redact.Config {
	switch {
	case len(c.Kinds) == 1 && c.Kinds[0] == KindsDefault:
		return redact.Config{Allow: c.Allow}
	case len(c.Kinds) == 1 && c.Kinds[0] == KindsNone:
		return redact.Config{Kinds: []string{}, Allow: c.Allow}
	}
	return redact.Config{Kinds: append([]string{}, c.Kinds...), Allow: c.Allow}
}

func (c *Redact) validate() error {
	if len(c.Kinds) == 0 {
		return fmt.Errorf("redact.kinds: is empty: write %s, %s, or a list of %s", KindsDefault, KindsNone, strings.Join(redact.Kinds(), ", "))
	}
	if len(c.Kinds) > 1 && (slices.Contains(c.Kinds, KindsDefault) || slices.Contains(c.Kinds, KindsNone)) {
		return fmt.Errorf("redact.kinds: %s and %s cannot be combined with other words", KindsDefault, KindsNone)
	}
	if _, err := redact.New(c.RedactorConfig()); err != nil { // "redact: kinds: …"
		return errors.New("redact." + strings.TrimPrefix(err.Error(), "redact: "))
	}
	return nil
}

// Session specifies the state between requests of one session.
type Session struct {
	TTLS            int    `yaml:"ttl_s" validate:"range=1 86400"`
	ClassifyTrigger string `yaml:"classify_trigger" validate:"oneof=every_request user_turn new_session"` // every_request, user_turn or new_session
}

// Timeout returns TimeoutMS as a duration.
func (c *Classifier) Timeout() time.Duration {
	return time.Duration(c.TimeoutMS) * time.Millisecond
}

package schema

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Limits of a schema. Schemas of real tools are far below them.
const (
	MaxBytes      = 256 << 10
	MaxDepth      = 64
	MaxValues     = 20_000
	MaxReferences = 2_000
)

// Limits of a value that is validated.
const (
	maxValueDepth  = 200
	maxValueValues = 1_000_000
)

// Limits of a number. The library computes with exact fractions, whose size is the
// exponent.
const (
	maxDigits   = 400
	maxExponent = 1000
)

// limits bounds a document.
type limits struct {
	depth, values, references int
}

// usage counts what a document contains.
type usage struct {
	limits     limits
	values     int
	references int
}

// check returns an error if v, which is depth levels deep, exceeds a limit.
func (u *usage) check(v any, depth int) error {
	if u.values++; u.values > u.limits.values {
		return fmt.Errorf("contains more than %d values", u.limits.values)
	}
	if depth > u.limits.depth {
		return fmt.Errorf("nests deeper than %d levels", u.limits.depth)
	}
	switch v := v.(type) {
	case json.Number:
		return checkNumber(string(v))
	case []any:
		for _, item := range v {
			if err := u.check(item, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, item := range v {
			if strings.HasPrefix(name, "$") && strings.HasSuffix(strings.ToLower(name), "ref") {
				if u.references++; u.references > u.limits.references {
					return fmt.Errorf("contains more than %d references", u.limits.references)
				}
			}
			if err := u.check(item, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkNumber(s string) error {
	if len(s) > maxDigits {
		return fmt.Errorf("contains a number with more than %d digits", maxDigits)
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if exponent, err := strconv.Atoi(s[i+1:]); err != nil || exponent > maxExponent || exponent < -maxExponent {
			return fmt.Errorf("contains a number with an exponent beyond %d", maxExponent)
		}
	}
	return nil
}

package cmdline

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// numberFlag is a flag whose value is a number or a duration within limits. The values of the
// library accept other notations as well, for example hexadecimal numbers, and their errors
// contain no limits.
type numberFlag[T float64 | int | time.Duration] struct {
	target *T
	name   string
	want   string // the values that it takes
	parse  func(text string) (value T, ok bool)
}

func (f *numberFlag[T]) Set(text string) error {
	value, ok := f.parse(text)
	if !ok {
		return flagValueError{fmt.Errorf("--%s is %s, not %q", f.name, f.want, text)}
	}
	*f.target = value
	return nil
}

// String returns the default of the help, "" for none.
func (f *numberFlag[T]) String() string {
	if f.target == nil || *f.target == 0 {
		return ""
	}
	return fmt.Sprint(*f.target)
}

func (f *numberFlag[T]) Type() string { return "number" }

// decimalNumber matches the numbers of decimal flags.
var decimalNumber = regexp.MustCompile(`^(\d+(\.\d*)?|\.\d+)$`)

// AddShareFlag adds a flag for a number above 0 and up to 1.
func AddShareFlag(cmd *cobra.Command, target *float64, name, usage string) {
	cmd.Flags().Var(&numberFlag[float64]{target, name, "a decimal number above 0 and up to 1, for example 0.7", func(text string) (float64, bool) {
		n, err := strconv.ParseFloat(text, 64)
		return n, err == nil && decimalNumber.MatchString(text) && n > 0 && n <= 1
	}}, name, usage)
}

// AddCountFlag adds a flag for a whole number from least to most; most 0 = no limit.
func AddCountFlag(cmd *cobra.Command, target *int, name string, least, most int, usage string) {
	want := fmt.Sprintf("a whole number from %d to %d", least, most)
	if most == 0 {
		want = fmt.Sprintf("a whole number, %d or more", least)
	}
	cmd.Flags().Var(&numberFlag[int]{target, name, want, func(text string) (int, bool) {
		n, err := strconv.ParseUint(text, 10, strconv.IntSize-1)
		return int(n), err == nil && int(n) >= least && (most == 0 || int(n) <= most)
	}}, name, usage)
}

// AddDurationFlag adds a flag for a duration from least to most; most 0 = no limit.
func AddDurationFlag(cmd *cobra.Command, target *time.Duration, name string, least, most time.Duration, usage string) {
	want := fmt.Sprintf("a time from %s to %s, for example 10s", formatLimit(least), formatLimit(most))
	if most == 0 {
		want = fmt.Sprintf("a time of %s or more, for example 10s", formatLimit(least))
	}
	cmd.Flags().Var(&numberFlag[time.Duration]{target, name, want, func(text string) (time.Duration, bool) {
		d, err := time.ParseDuration(text)
		return d, err == nil && d >= least && (most == 0 || d <= most)
	}}, name, usage)
}

// formatLimit returns 24h for 24h0m0s.
func formatLimit(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

package golden

import (
	"fmt"
	"strconv"
	"strings"
)

// Patch is the part of a registry file that makes the proposal hold, with what
// stood there before; "" when nothing is to be changed, or no setting is good
// enough to be proposed.
func (f *FitResult) Patch() string {
	if !f.Reached {
		return ""
	}
	now, best := f.TrainNow.Setting, f.TrainBest.Setting
	var lines []string
	add := func(key, was, will string) {
		if was != will {
			lines = append(lines, fmt.Sprintf("  %s: %s # was %s", key, will, was))
		}
	}
	add("confidence_threshold", number(now.ConfidenceThreshold), number(best.ConfidenceThreshold))
	add("min_confidence", numberOr(now.MinConfidence), numberOr(best.MinConfidence))
	add("ambiguity_threshold", number(now.AmbiguityThreshold), number(best.AmbiguityThreshold))
	if len(lines) == 0 {
		return ""
	}
	return "routing:\n" + strings.Join(lines, "\n") + "\n"
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func numberOr(v *float64) string {
	if v == nil {
		return "not set"
	}
	return number(*v)
}

package costs

import (
	"strings"
	"time"
)

// dateOrder is how a file writes dates with slashes or dots.
type dateOrder uint8

const (
	monthFirst dateOrder = iota // 02/13/2026
	dayFirst                    // 13/02/2026
)

// sureLayouts are read the same way everywhere.
var sureLayouts = []string{
	"2006-01-02", "2006/01/02", "20060102", time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05",
	"2006-01", "2006/01", "Jan 2006", "January 2006", "2 Jan 2006", "Jan 2, 2006",
}

// orderLayouts depend on the order of day and month.
var orderLayouts = map[dateOrder][]string{
	monthFirst: {"1/2/2006", "1-2-2006", "1/2/2006 15:04:05"},
	dayFirst:   {"2/1/2006", "2-1-2006", "2.1.2006", "2/1/2006 15:04:05"},
}

// parseDate returns the day a value names, at midnight UTC.
func parseDate(s string, order dateOrder) (time.Time, bool) {
	s = strings.TrimSpace(s)
	for _, layouts := range [][]string{sureLayouts, orderLayouts[order]} {
		for _, layout := range layouts {
			if t, err := time.Parse(layout, s); err == nil {
				y, m, d := t.Date()
				return time.Date(y, m, d, 0, 0, 0, 0, time.UTC), true
			}
		}
	}
	return time.Time{}, false
}

// orderOf finds out the order of day and month: the first value that fits only
// one order decides; when all fit both, a decimal comma speaks for the day.
func orderOf(values []string, mark byte) dateOrder {
	for _, v := range values {
		_, month := parseDate(v, monthFirst)
		_, day := parseDate(v, dayFirst)
		if month != day {
			if day {
				return dayFirst
			}
			return monthFirst
		}
	}
	if mark == ',' {
		return dayFirst
	}
	return monthFirst
}

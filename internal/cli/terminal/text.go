package terminal

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"
)

// TextWidth returns the width of the longest line of a text, in columns.
func TextWidth(text string) int { return lipgloss.Width(text) }

// WrapWords breaks the lines of a text that are longer than the width in columns.
func WrapWords(text string, width int) string { return ansi.Wrap(text, width, "") }

// Truncate shortens text to the width in columns.
func Truncate(s string, width int) string { return ansi.Truncate(s, width, "…") }

// Printable replaces control characters, which could move the cursor or hide text, and
// characters that change the direction of text, by U+FFFD. Line breaks stay, tabs become
// spaces.
func Printable(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.ReplaceAll(s, "\t", "    ")
	return strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) && r > '\u200f') {
			return utf8.RuneError
		}
		return r
	}, s)
}

// OneLine joins the lines of a text by "; ", and makes it printable.
func OneLine(s string) string {
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = Printable(lines[i])
	}
	return strings.Join(lines, "; ")
}

// FormatDate returns the day of a time, in UTC: 2026-01-02.
func FormatDate(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// FormatMinute returns a time to the minute: 2026-01-02 15:04 UTC.
func FormatMinute(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 UTC") }

// TimeHeader is the header of a column of FormatRowTime, and TimeWidth the width of the column.
const (
	TimeHeader = "TIME (UTC)"
	TimeWidth  = len(rowTimeLayout)
)

const rowTimeLayout = "01-02 15:04"

// FormatRowTime returns a time to the minute, in UTC and without the year: 01-02 15:04.
func FormatRowTime(at time.Time) string { return at.UTC().Format(rowTimeLayout) }

package golden

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// frame is the part of an SVG plot that has nothing to do with what it shows:
// where the axes stand, in the plot's own units, and their ticks.
type frame struct {
	Width, Height            float64
	Left, Right, Top, Bottom float64
	X, Y                     []tick
	Alt                      string // what the plot says, in words
}

type tick struct {
	At    float64
	Label string
}

// Below is where the labels of the horizontal axis stand.
func (f *frame) Below() float64 { return f.Bottom + 16 }

// Before is where the labels of the vertical axis end.
func (f *frame) Before() float64 { return f.Left - 6 }

func (f *frame) x(v float64) float64 { return f.Left + v*(f.Right-f.Left) }
func (f *frame) y(v float64) float64 { return f.Bottom - v*(f.Bottom-f.Top) }

// newFrame has ticks at fifths of both axes; the vertical one ends at top.
func newFrame(top float64, label func(v float64) string) frame {
	f := frame{Width: 460, Height: 280, Left: 46, Right: 446, Top: 16, Bottom: 252}
	for i := range 6 {
		v := float64(i) / 5
		f.X = append(f.X, tick{f.x(v), strconv.FormatFloat(v, 'f', 1, 64)})
		f.Y = append(f.Y, tick{f.y(v), label(v * top)})
	}
	return f
}

// notClaimed is the confidence of a request no intent was claimed for: no
// threshold accepts it.
const notClaimed = -1

// shownConfidences are the confidences of the report as the metrics see them.
func shownConfidences(r *Report) []scored {
	silent := map[string]bool{}
	for i := range r.Cases {
		if r.Cases[i].Actual.Intent == contract.Unknown {
			silent[r.Cases[i].ID] = true
		}
	}
	rows := make([]scored, len(r.Confidences))
	for i, p := range r.Confidences {
		rows[i] = scored{Confidence: p.Confidence, Right: p.Correct}
		if silent[p.ID] {
			rows[i].Confidence = notClaimed
		}
	}
	return rows
}

func claimedOnly(rows []scored) []scored {
	return slices.DeleteFunc(slices.Clone(rows), func(r scored) bool { return r.Confidence < 0 })
}

// claimedCurve is the part of the risk–coverage curve that thresholds reach.
func claimedCurve(rows []scored) []operatingPoint {
	return slices.DeleteFunc(riskCoverage(rows), func(p operatingPoint) bool { return p.Threshold < 0 })
}

// riskPlot is the share of wrong answers against that of answers.
type riskPlot struct {
	frame
	Line      string
	Wanted    float64 // where the risk that is wanted stands
	Widest    *plotMark
	Unclaimed string
}

type plotMark struct {
	X, Y          float64
	Label, Anchor string
}

// plotRisk returns nil when there is nothing to draw, as the other plots do.
func plotRisk(rows []scored) *riskPlot {
	curve := claimedCurve(rows)
	if len(curve) == 0 {
		return nil
	}
	most := 0.0
	for _, p := range curve {
		most = max(most, 1-p.Precision)
	}
	top := 1.0 // or less, with whole per cents at the ticks
	for _, candidate := range []float64{0.5, 0.25, 0.1, 0.05} {
		if most <= candidate {
			top = candidate
		}
	}
	p := &riskPlot{frame: newFrame(top, func(v float64) string { return strconv.FormatFloat(100*v, 'f', 0, 64) + " %" })}
	p.Wanted = p.y((1 - wantedPrecision) / top)
	var line strings.Builder
	for i, point := range curve {
		if i > 0 {
			line.WriteByte(' ')
		}
		line.WriteString(coordinate(p.x(point.Coverage)) + "," + coordinate(p.y((1-point.Precision)/top)))
	}
	p.Line = line.String()
	p.Alt = fmt.Sprintf("Risk–coverage curve of %d requests.", len(rows))
	if best, ok := widest(curve, wantedPrecision); ok {
		mark := plotMark{X: p.x(best.Coverage), Y: p.y((1 - best.Precision) / top), Anchor: "middle"}
		mark.Label = fmt.Sprintf("%s from %s on", percentage(best.Coverage), twoDigits(best.Threshold))
		if best.Coverage > 0.75 {
			mark.Anchor = "end"
		} else if best.Coverage < 0.25 {
			mark.Anchor = "start"
		}
		p.Widest = &mark
		p.Alt += fmt.Sprintf(" At most 2 %% are wrong for %s of them, from a confidence of %s on.", percentage(best.Coverage), twoDigits(best.Threshold))
	}
	if n := len(rows) - len(claimedOnly(rows)); n > 0 {
		p.Unclaimed = fmt.Sprintf("%d of %d requests came out as unknown and are never answered.", n, len(rows))
	}
	return p
}

// barPlot is a reliability diagram or a histogram.
type barPlot struct {
	frame
	Bars  []plotBar
	Line  string
	Error string
	Floor string
	Table []binRow
}

type plotBar struct {
	X, Y, W, H   float64
	Class, Label string
}

type binRow struct {
	Range    string
	N, Right int
	Mean     string
}

func plotReliability(rows []scored) *barPlot {
	rows = claimedOnly(rows)
	e, ok := calibrationError(rows)
	if !ok {
		return nil
	}
	floor, _ := calibrationFloor(rows)
	p := &barPlot{
		frame: newFrame(1, func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }),
		Error: percentage(e), Floor: percentage(floor),
	}
	p.Line = coordinate(p.Left) + "," + coordinate(p.Bottom) + " " + coordinate(p.Right) + "," + coordinate(p.Top)
	p.Alt = fmt.Sprintf("Reliability diagram of %d requests, calibration error %s.", len(rows), p.Error)
	for i, b := range reliability(rows) {
		label := fmt.Sprintf("%s: %s of %d right", binRange(i), percentage(b.Accuracy), b.N)
		switch {
		case b.N > 0 && b.Accuracy == 0:
			p.bar(i, 0, 0.01, "wrong", label) // all wrong is not the same as none there
		case b.N > 0:
			p.bar(i, 0, b.Accuracy, "bar", label)
		}
	}
	return p
}

func plotHistogram(rows []scored) *barPlot {
	rows = claimedOnly(rows)
	if len(rows) == 0 {
		return nil
	}
	bins := reliability(rows)
	most := 1
	for _, b := range bins {
		most = max(most, b.N)
	}
	most = (most + 4) / 5 * 5 // whole numbers at the ticks
	p := &barPlot{frame: newFrame(float64(most), func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) })}
	p.Alt = fmt.Sprintf("Histogram of the confidences of %d requests.", len(rows))
	for i, b := range bins {
		if b.N == 0 {
			continue
		}
		right := int(b.Accuracy*float64(b.N) + 0.5)
		wrong := b.N - right
		p.bar(i, 0, float64(right)/float64(most), "bar", fmt.Sprintf("%s: %d right", binRange(i), right))
		p.bar(i, float64(right)/float64(most), float64(wrong)/float64(most), "wrong", fmt.Sprintf("%s: %d wrong", binRange(i), wrong))
		p.Table = append(p.Table, binRow{Range: binRange(i), N: b.N, Right: right, Mean: twoDigits(b.Confidence)})
	}
	return p
}

// bar adds the bar of a bin, from a height on and so high; none without height.
func (p *barPlot) bar(i int, from, height float64, class, label string) {
	if height <= 0 {
		return
	}
	const gap = 2
	width := (p.Right - p.Left) / calibrationBins
	p.Bars = append(p.Bars, plotBar{
		X: p.Left + float64(i)*width + gap/2, W: width - gap,
		Y: p.y(from + height), H: p.y(from) - p.y(from+height),
		Class: class, Label: label,
	})
}

func binRange(i int) string {
	return twoDigits(float64(i)/calibrationBins) + "–" + twoDigits(float64(i+1)/calibrationBins)
}

// coordinate writes a number for SVG.
func coordinate(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

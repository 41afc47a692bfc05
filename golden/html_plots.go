package golden

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// plotFrame contains the size, axes and ticks of an SVG plot, in its own units.
type plotFrame struct {
	Width, Height            float64
	Left, Right, Top, Bottom float64
	X, Y                     []axisTick
	Alt                      string // description of the plot
}

type axisTick struct {
	At    float64
	Label string
}

// Below returns the position of the labels below the horizontal axis.
func (f *plotFrame) Below() float64 { return f.Bottom + 16 }

// Before returns the end of the labels left of the vertical axis.
func (f *plotFrame) Before() float64 { return f.Left - 6 }

func (f *plotFrame) scaleX(v float64) float64 { return f.Left + v*(f.Right-f.Left) }
func (f *plotFrame) scaleY(v float64) float64 { return f.Bottom - v*(f.Bottom-f.Top) }

// newPlotFrame returns a frame with ticks at fifths of both axes. The vertical
// axis ends at top.
func newPlotFrame(top float64, label func(v float64) string) plotFrame {
	f := plotFrame{Width: 460, Height: 280, Left: 46, Right: 446, Top: 16, Bottom: 252}
	for i := range 6 {
		v := float64(i) / 5
		f.X = append(f.X, axisTick{f.scaleX(v), strconv.FormatFloat(v, 'f', 1, 64)})
		f.Y = append(f.Y, axisTick{f.scaleY(v), label(v * top)})
	}
	return f
}

// unclaimedConfidence marks a request with an unknown intent: no threshold
// accepts it.
const unclaimedConfidence = -1

// scoredConfidences converts the confidences of the report for the metrics.
func scoredConfidences(r *Report) []scoredRow {
	silent := map[string]bool{}
	for i := range r.Cases {
		if r.Cases[i].Actual.Intent == contract.Unknown {
			silent[r.Cases[i].ID] = true
		}
	}
	rows := make([]scoredRow, len(r.Confidences))
	for i, p := range r.Confidences {
		rows[i] = scoredRow{Confidence: p.Confidence, Correct: p.Correct}
		if silent[p.ID] {
			rows[i].Confidence = unclaimedConfidence
		}
	}
	return rows
}

func claimedOnly(rows []scoredRow) []scoredRow {
	return slices.DeleteFunc(slices.Clone(rows), func(r scoredRow) bool { return r.Confidence < 0 })
}

// claimedCurve returns the risk–coverage curve without rejected requests.
func claimedCurve(rows []scoredRow) []operatingPoint {
	return slices.DeleteFunc(riskCoverageCurve(rows), func(p operatingPoint) bool { return p.Threshold < 0 })
}

// riskPlot is a risk–coverage curve: the share of wrong answers over the share
// of answers.
type riskPlot struct {
	plotFrame
	Line      string
	Wanted    float64 // position of the target risk
	Widest    *plotMark
	Unclaimed string
}

type plotMark struct {
	X, Y          float64
	Label, Anchor string
}

// plotRisk returns nil if there are no data, like the other plots.
func plotRisk(rows []scoredRow) *riskPlot {
	curve := claimedCurve(rows)
	if len(curve) == 0 {
		return nil
	}
	most := 0.0
	for _, p := range curve {
		most = max(most, 1-p.Precision)
	}
	top := 1.0 // reduced below, with whole percentages at the ticks
	for _, candidate := range []float64{0.5, 0.25, 0.1, 0.05} {
		if most <= candidate {
			top = candidate
		}
	}
	p := &riskPlot{plotFrame: newPlotFrame(top, func(v float64) string { return strconv.FormatFloat(100*v, 'f', 0, 64) + " %" })}
	p.Wanted = p.scaleY((1 - wantedPrecision) / top)
	var line strings.Builder
	for i, point := range curve {
		if i > 0 {
			line.WriteByte(' ')
		}
		line.WriteString(formatCoordinate(p.scaleX(point.Coverage)) + "," + formatCoordinate(p.scaleY((1-point.Precision)/top)))
	}
	p.Line = line.String()
	p.Alt = fmt.Sprintf("Risk–coverage curve of %d requests.", len(rows))
	if best, ok := widestCoverage(curve, wantedPrecision); ok {
		mark := plotMark{X: p.scaleX(best.Coverage), Y: p.scaleY((1 - best.Precision) / top), Anchor: "middle"}
		mark.Label = fmt.Sprintf("%s from %s on", formatPercent(best.Coverage), formatTwoDigits(best.Threshold))
		if best.Coverage > 0.75 {
			mark.Anchor = "end"
		} else if best.Coverage < 0.25 {
			mark.Anchor = "start"
		}
		p.Widest = &mark
		p.Alt += fmt.Sprintf(" At most 2 %% are wrong for %s of them, from a confidence of %s on.", formatPercent(best.Coverage), formatTwoDigits(best.Threshold))
	}
	if n := len(rows) - len(claimedOnly(rows)); n > 0 {
		p.Unclaimed = fmt.Sprintf("%d of %d requests came out as unknown and are never answered.", n, len(rows))
	}
	return p
}

// barPlot is a histogram of confidences: bars of correct requests, with the wrong ones
// on top.
type barPlot struct {
	plotFrame
	Bars []plotBar
}

type plotBar struct {
	X, Y, W, H   float64
	Class, Label string
}

func plotHistogram(rows []scoredRow) *barPlot {
	rows = claimedOnly(rows)
	if len(rows) == 0 {
		return nil
	}
	bins := reliabilityBins(rows)
	most := 1
	for _, b := range bins {
		most = max(most, b.N)
	}
	most = (most + 4) / 5 * 5 // whole numbers at the ticks
	p := &barPlot{plotFrame: newPlotFrame(float64(most), func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) })}
	p.Alt = fmt.Sprintf("Histogram of the confidences of %d requests.", len(rows))
	for i, b := range bins {
		right := int(b.Accuracy*float64(b.N) + 0.5)
		wrong := b.N - right
		p.addBar(i, 0, float64(right)/float64(most), "bar", fmt.Sprintf("%s: %d right", binRange(i), right))
		p.addBar(i, float64(right)/float64(most), float64(wrong)/float64(most), "wrong", fmt.Sprintf("%s: %d wrong", binRange(i), wrong))
	}
	return p
}

// addBar adds a bar for a bin, unless its height is 0.
func (p *barPlot) addBar(i int, from, height float64, class, label string) {
	if height <= 0 {
		return
	}
	const gap = 2
	width := (p.Right - p.Left) / calibrationBins
	p.Bars = append(p.Bars, plotBar{
		X: p.Left + float64(i)*width + gap/2, W: width - gap,
		Y: p.scaleY(from + height), H: p.scaleY(from) - p.scaleY(from+height),
		Class: class, Label: label,
	})
}

func binRange(i int) string {
	return formatTwoDigits(float64(i)/calibrationBins) + "–" + formatTwoDigits(float64(i+1)/calibrationBins)
}

// formatCoordinate formats a number for SVG.
func formatCoordinate(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

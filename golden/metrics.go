package golden

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// scoredRow is one classified row: the confidence of its best answer, and
// whether that was correct. An out-of-scope row has no correct answer.
type scoredRow struct {
	Confidence float64
	Correct    bool
	OutOfScope bool
}

// calibrationBins is the number of equal-width bins for the expected
// calibration error and the reliability diagram.
const calibrationBins = 15

// calibrationBin is one bin of a reliability diagram.
type calibrationBin struct {
	N          int
	Confidence float64 // mean of its rows
	Accuracy   float64 // share of its rows that is correct
}

// binIndex returns the bin of a confidence. A border belongs to the bin above
// it, and 1 to the last one.
func binIndex(confidence float64) int {
	return min(max(int(confidence*calibrationBins), 0), calibrationBins-1)
}

// reliabilityBins assigns the in-scope rows to bins.
func reliabilityBins(rows []scoredRow) [calibrationBins]calibrationBin {
	var bins [calibrationBins]calibrationBin
	for _, r := range rows {
		if r.OutOfScope {
			continue
		}
		b := &bins[binIndex(r.Confidence)]
		b.N++
		b.Confidence += r.Confidence
		if r.Correct {
			b.Accuracy++
		}
	}
	for i := range bins {
		if b := &bins[i]; b.N > 0 {
			b.Confidence /= float64(b.N)
			b.Accuracy /= float64(b.N)
		}
	}
	return bins
}

// calibrationError returns the expected calibration error (ECE) of the in-scope
// rows: the mean difference between the confidence and the accuracy of a bin,
// weighted by rows. It returns false if there are none.
func calibrationError(rows []scoredRow) (float64, bool) {
	sum, n := 0.0, 0
	for _, b := range reliabilityBins(rows) {
		sum += float64(b.N) * math.Abs(b.Confidence-b.Accuracy)
		n += b.N
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}

const (
	nullDraws = 400
	nullSeed  = 0x63617072 // arbitrary, but fixed
)

// calibrationNull returns the calibration error of a perfectly calibrated
// model: the median over seeded simulations in which each row is correct with
// its confidence as probability. An error close to it is not significant.
func calibrationNull(rows []scoredRow) (float64, bool) {
	drawn := slices.DeleteFunc(slices.Clone(rows), func(r scoredRow) bool { return r.OutOfScope })
	if len(drawn) == 0 {
		return 0, false
	}
	rng := rand.New(rand.NewPCG(nullSeed, nullSeed)) //nolint:gosec // draws that must be the same every time
	errors := make([]float64, nullDraws)
	for i := range errors {
		for j := range drawn {
			drawn[j].Correct = rng.Float64() < drawn[j].Confidence
		}
		errors[i], _ = calibrationError(drawn)
	}
	slices.Sort(errors)
	return (errors[nullDraws/2-1] + errors[nullDraws/2]) / 2, true
}

// auroc returns the area under the ROC curve for separating in-scope from
// out-of-scope rows by confidence: the probability that an in-scope row has the
// higher one, with ties counted half. It returns false if either kind is
// missing.
func auroc(rows []scoredRow) (float64, bool) {
	sorted := slices.SortedFunc(slices.Values(rows), func(a, b scoredRow) int {
		return cmp.Compare(a.Confidence, b.Confidence)
	})
	// Mann–Whitney U: sum of the ranks of the in-scope rows, with mean ranks
	// for ties.
	var in, out int
	ranks := 0.0
	for i := 0; i < len(sorted); {
		j, tiedIn := i, 0
		for ; j < len(sorted) && sorted[j].Confidence == sorted[i].Confidence; j++ {
			if !sorted[j].OutOfScope {
				tiedIn++
			}
		}
		ranks += float64(tiedIn) * float64(i+1+j) / 2
		in += tiedIn
		out += j - i - tiedIn
		i = j
	}
	if in == 0 || out == 0 {
		return 0, false
	}
	return (ranks - float64(in)*float64(in+1)/2) / (float64(in) * float64(out)), true
}

// operatingPoint is the effect of accepting every answer from a confidence on:
// Coverage is the share of all rows accepted, Precision the share of these that
// is correct. Accepting an out-of-scope row is an error.
type operatingPoint struct {
	Threshold, Coverage, Precision float64
	Accepted                       int
}

// operateAt returns the operating point of a threshold. It returns false if
// nothing is accepted, because there is no precision then.
func operateAt(rows []scoredRow, threshold float64) (operatingPoint, bool) {
	p := operatingPoint{Threshold: threshold}
	right := 0
	for _, r := range rows {
		if r.Confidence < threshold {
			continue
		}
		p.Accepted++
		if r.Correct {
			right++
		}
	}
	if p.Accepted == 0 {
		return p, false
	}
	p.Coverage = float64(p.Accepted) / float64(len(rows))
	p.Precision = float64(right) / float64(p.Accepted)
	return p, true
}

// riskCoverageCurve returns all operating points, the highest threshold first.
// Rows with the same confidence form one point, because no threshold separates
// them.
func riskCoverageCurve(rows []scoredRow) []operatingPoint {
	sorted := slices.SortedFunc(slices.Values(rows), func(a, b scoredRow) int {
		return cmp.Compare(b.Confidence, a.Confidence)
	})
	var points []operatingPoint
	right := 0
	for i, r := range sorted {
		if r.Correct {
			right++
		}
		if i+1 < len(sorted) && sorted[i+1].Confidence == r.Confidence {
			continue
		}
		points = append(points, operatingPoint{
			Threshold: r.Confidence, Accepted: i + 1,
			Coverage:  float64(i+1) / float64(len(rows)),
			Precision: float64(right) / float64(i+1),
		})
	}
	return points
}

// widestCoverage returns the point with the greatest coverage whose precision
// is at least the given one, or false if there is none.
func widestCoverage(curve []operatingPoint, precision float64) (operatingPoint, bool) {
	for _, p := range slices.Backward(curve) {
		if p.Precision >= precision {
			return p, true
		}
	}
	return operatingPoint{}, false
}

// quantile returns the smallest of the sorted values that a share q does not
// exceed (nearest rank).
func quantile[N int | int64 | float64](sorted []N, q float64) N {
	if len(sorted) == 0 {
		var zero N
		return zero
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

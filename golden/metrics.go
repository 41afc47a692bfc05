package golden

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// scored is one classified row as the metrics see it: how sure the classifier
// was of its best answer, and whether that was right. An out-of-scope row has no
// right answer, so it is never Right.
type scored struct {
	Confidence float64
	Right      bool
	OutOfScope bool
}

// calibrationBins is how many bins of equal width [0,1] is cut into for the
// expected calibration error and the reliability diagram.
const calibrationBins = 15

// bin is one bar of a reliability diagram.
type bin struct {
	N          int
	Confidence float64 // mean of the rows in it
	Accuracy   float64 // share of them that is right
}

// binOf is the bin of a confidence. A border belongs to the bin above it, and 1
// to the last one.
func binOf(confidence float64) int {
	return min(max(int(confidence*calibrationBins), 0), calibrationBins-1)
}

// reliability sorts the rows that are in scope into bins.
func reliability(rows []scored) [calibrationBins]bin {
	var bins [calibrationBins]bin
	for _, r := range rows {
		if r.OutOfScope {
			continue
		}
		b := &bins[binOf(r.Confidence)]
		b.N++
		b.Confidence += r.Confidence
		if r.Right {
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

// calibrationError is the expected calibration error of the rows in scope: the
// mean distance between what a bin claims and what it holds, weighted by rows.
// It is false when there are none.
func calibrationError(rows []scored) (float64, bool) {
	sum, n := 0.0, 0
	for _, b := range reliability(rows) {
		sum += float64(b.N) * math.Abs(b.Confidence-b.Accuracy)
		n += b.N
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}

const (
	floorDraws = 400
	floorSeed  = 0x63617072 // any; it only has to stay the same
)

// calibrationFloor is the calibration error that chance alone gives: the median
// over seeded draws of a model that says the same confidences and is right
// exactly as often as they say. An error near it cannot be told from none.
func calibrationFloor(rows []scored) (float64, bool) {
	drawn := slices.DeleteFunc(slices.Clone(rows), func(r scored) bool { return r.OutOfScope })
	if len(drawn) == 0 {
		return 0, false
	}
	rng := rand.New(rand.NewPCG(floorSeed, floorSeed)) //nolint:gosec // draws that must be the same every time
	errors := make([]float64, floorDraws)
	for i := range errors {
		for j := range drawn {
			drawn[j].Right = rng.Float64() < drawn[j].Confidence
		}
		errors[i], _ = calibrationError(drawn)
	}
	slices.Sort(errors)
	return (errors[floorDraws/2-1] + errors[floorDraws/2]) / 2, true
}

// auroc is the chance that a row in scope has a higher confidence than one out
// of scope, ties counted half: the area under the ROC curve of telling the two
// apart. It is false when either kind is missing.
func auroc(rows []scored) (float64, bool) {
	sorted := slices.SortedFunc(slices.Values(rows), func(a, b scored) int {
		return cmp.Compare(a.Confidence, b.Confidence)
	})
	// Mann-Whitney: the ranks of the rows in scope, equal confidences sharing
	// the mean of theirs.
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

// operatingPoint is what accepting every answer from a confidence on means:
// Coverage is the share of all rows accepted, Precision the share of those that
// is right. An accepted row that is out of scope is an error.
type operatingPoint struct {
	Threshold, Coverage, Precision float64
	Accepted                       int
}

// operate accepts from the threshold on. With nothing accepted there is no
// precision, and it is false.
func operate(rows []scored, threshold float64) (operatingPoint, bool) {
	p := operatingPoint{Threshold: threshold}
	right := 0
	for _, r := range rows {
		if r.Confidence < threshold {
			continue
		}
		p.Accepted++
		if r.Right {
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

// riskCoverage returns every operating point there is, the most confident first:
// one for each different confidence, as rows of equal confidence cannot be told
// apart by a threshold.
func riskCoverage(rows []scored) []operatingPoint {
	sorted := slices.SortedFunc(slices.Values(rows), func(a, b scored) int {
		return cmp.Compare(b.Confidence, a.Confidence)
	})
	var points []operatingPoint
	right := 0
	for i, r := range sorted {
		if r.Right {
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

// widest is the point of the largest coverage whose precision is at least that,
// with hindsight. It is false when there is none.
func widest(curve []operatingPoint, precision float64) (operatingPoint, bool) {
	for _, p := range slices.Backward(curve) {
		if p.Precision >= precision {
			return p, true
		}
	}
	return operatingPoint{}, false
}

// quantile is the smallest value that a share q of the sorted values does not
// exceed (nearest rank).
func quantile[N int | int64 | float64](sorted []N, q float64) N {
	if len(sorted) == 0 {
		var zero N
		return zero
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

package golden

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var nearly = cmpopts.EquateApprox(0, 1e-12)

func TestCalibrationError(t *testing.T) {
	tests := []struct {
		name string
		rows []scoredRow
		want float64
		ok   bool
	}{
		{"nothing", nil, 0, false},
		{"only out of scope", []scoredRow{{Confidence: 0.9, OutOfScope: true}}, 0, false},
		{"confident and right", []scoredRow{{1, true, false}, {1, true, false}}, 0, true},
		{"confident and wrong", []scoredRow{{1, false, false}}, 1, true},
		// Two rows in the bin of 0.9 (mean 0.91, half correct: |0.91-0.5| =
		// 0.41) and one in that of 0.1 (correct: |0.1-1| = 0.9): (2·0.41 + 0.9)
		// / 3.
		{"several bins", []scoredRow{{0.90, true, false}, {0.92, false, false}, {0.1, true, false}}, (0.82 + 0.9) / 3, true},
		{"out of scope excluded", []scoredRow{{1, true, false}, {0.9, false, true}}, 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := calibrationError(tt.rows)
			if ok != tt.ok || math.Abs(got-tt.want) > 1e-12 {
				t.Errorf("got %v, %v, want %v, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestBinIndex(t *testing.T) {
	tests := map[float64]int{-1: 0, 0: 0, 0.066: 0, 0.067: 1, 0.5: 7, 0.9333: 13, 0.934: 14, 1: 14, 2: 14}
	for confidence, want := range tests {
		if got := binIndex(confidence); got != want {
			t.Errorf("binOf(%v): got %d, want %d", confidence, got, want)
		}
	}
}

// TestCalibrationNull checks two known values: 0 for confidence 1, and for confidence 0.5 the
// median deviation of n coin tosses, about 0.6745·σ.
func TestCalibrationNull(t *testing.T) {
	if got, ok := calibrationNull(nil); ok {
		t.Errorf("no rows: got %v, want none", got)
	}
	sure := slices.Repeat([]scoredRow{{Confidence: 1}}, 50)
	if got, ok := calibrationNull(sure); got != 0 || !ok {
		t.Errorf("confidence 1: got %v, %v, want 0", got, ok)
	}
	const n = 400
	coins := slices.Repeat([]scoredRow{{Confidence: 0.5, Correct: true}}, n)
	sigma := 0.5 / math.Sqrt(n)
	got, _ := calibrationNull(coins)
	if want := 0.6745 * sigma; math.Abs(got-want) > 0.2*want {
		t.Errorf("confidence 0.5: got %v, want about %v", got, want)
	}
	if again, _ := calibrationNull(coins); again != got {
		t.Errorf("got %v, then %v, want the same", got, again)
	}
	if !coins[0].Correct {
		t.Error("got the rows changed, want them unchanged")
	}
}

func TestAUROC(t *testing.T) {
	in := func(c float64) scoredRow { return scoredRow{Confidence: c, Correct: true} }
	out := func(c float64) scoredRow { return scoredRow{Confidence: c, OutOfScope: true} }
	tests := []struct {
		name string
		rows []scoredRow
		want float64
		ok   bool
	}{
		{"one class only", []scoredRow{in(1), in(0)}, 0, false},
		{"separated", []scoredRow{in(0.9), out(0.1), in(0.8)}, 1, true},
		{"reversed", []scoredRow{in(0.1), out(0.9)}, 0, true},
		{"equal confidences", []scoredRow{in(0.5), out(0.5), out(0.5)}, 0.5, true},
		// Pairs: (0.9, 0.5) 1, (0.9, 0.2) 1, (0.5, 0.5) ½, (0.5, 0.2) 1.
		{"two of each", []scoredRow{in(0.9), in(0.5), out(0.5), out(0.2)}, 3.5 / 4, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := auroc(tt.rows); ok != tt.ok || math.Abs(got-tt.want) > 1e-12 {
				t.Errorf("got %v, %v, want %v, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

// rowsOf generates rows with few distinct confidences, so that there are ties.
func rowsOf(t *rapid.T) []scoredRow {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) scoredRow {
		r := scoredRow{
			Confidence: float64(rapid.IntRange(0, 12).Draw(t, "confidence")) / 12,
			Correct:    rapid.Bool().Draw(t, "right"),
			OutOfScope: rapid.Bool().Draw(t, "outOfScope"),
		}
		r.Correct = r.Correct && !r.OutOfScope
		return r
	}), 0, 40).Draw(t, "rows")
}

func TestAUROC_EqualsShareOfPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rowsOf(t)
		won, pairs := 0.0, 0.0
		for _, in := range rows {
			for _, out := range rows {
				if in.OutOfScope || !out.OutOfScope {
					continue
				}
				pairs++
				switch {
				case in.Confidence > out.Confidence:
					won++
				case in.Confidence == out.Confidence:
					won += 0.5
				}
			}
		}
		got, ok := auroc(rows)
		if ok != (pairs > 0) || ok && math.Abs(got-won/pairs) > 1e-12 {
			t.Fatalf("got %v, %v, want %v of %v pairs", got, ok, won, pairs)
		}
	})
}

func TestRiskCoverageCurve(t *testing.T) {
	rows := []scoredRow{{0.9, true, false}, {0.8, true, false}, {0.8, false, true}, {0.3, true, false}, {0.1, false, false}}
	want := []operatingPoint{
		{Threshold: 0.9, Accepted: 1, Coverage: 0.2, Precision: 1},
		{Threshold: 0.8, Accepted: 3, Coverage: 0.6, Precision: 2.0 / 3},
		{Threshold: 0.3, Accepted: 4, Coverage: 0.8, Precision: 0.75},
		{Threshold: 0.1, Accepted: 5, Coverage: 1, Precision: 0.6},
	}
	got := riskCoverageCurve(rows)
	if diff := cmp.Diff(want, got, nearly); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The precision need not be monotonic: 0.75 is reached again later.
	if p, ok := widestCoverage(got, 0.7); !ok || p.Threshold != 0.3 {
		t.Errorf("widest: got %v, %v, want the point at 0.3", p, ok)
	}
	if p, ok := widestCoverage(got[1:], 0.98); ok {
		t.Errorf("widest: got %v, want none", p)
	}
	if p, ok := operateAt(rows, 0.95); ok {
		t.Errorf("no point: got %v, want none", p)
	}
	if p, ok := operateAt(rows, math.Inf(1)); ok {
		t.Errorf("threshold above all: got %v, want none", p)
	}
}

// TestRiskCoverageCurve_MatchesThresholds checks that each point equals operateAt for its
// threshold, coverage increases, and no threshold has a wider coverage than the widest point.
func TestRiskCoverageCurve_MatchesThresholds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rowsOf(t)
		curve := riskCoverageCurve(rows)
		last := 0.0
		for _, p := range curve {
			want, ok := operateAt(rows, p.Threshold)
			if diff := cmp.Diff(want, p, nearly); !ok || diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if p.Coverage <= last {
				t.Fatalf("got coverage %v after %v", p.Coverage, last)
			}
			last = p.Coverage
		}
		best, found := widestCoverage(curve, 0.75)
		for i := range 26 {
			p, ok := operateAt(rows, float64(i)/24)
			if ok && p.Precision >= 0.75 && (!found || p.Coverage > best.Coverage) {
				t.Fatalf("got %v, want the wider %v", best, p)
			}
		}
	})
}

func TestQuantile(t *testing.T) {
	sorted := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	tests := map[float64]int{0: 1, 0.01: 1, 0.5: 5, 0.51: 6, 0.99: 10, 1: 10}
	for q, want := range tests {
		if got := quantile(sorted, q); got != want {
			t.Errorf("quantile(%v): got %d, want %d", q, got, want)
		}
	}
	if got := quantile([]float64{}, 0.5); got != 0 {
		t.Errorf("no values: got %v, want 0", got)
	}
}

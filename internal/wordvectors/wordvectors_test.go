package wordvectors

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTable_Format(t *testing.T) {
	if !strings.HasPrefix(table, Format) {
		t.Fatalf("got a table that starts with %q, want %q", table[:len(Format)], Format)
	}
	n := int(uint32At(countAt))
	if got, want := len(table), hashesAt+4*n+Dimensions*n; got != want {
		t.Fatalf("got %d bytes for %d words, want %d", got, n, want)
	}
	if got, want := crc32.ChecksumIEEE([]byte(table[countAt:])), Checksum(); got != want {
		t.Errorf("got the checksum %08x, want %08x", got, want)
	}
	if n < 25_000 || len(table) > 2<<20 {
		t.Errorf("got %d words in %d bytes, want at least 25,000 in 2 MiB", n, len(table))
	}
	for bucket := range Buckets {
		from, to := uint16At(bucketsAt+2*bucket), uint16At(bucketsAt+2*bucket+2)
		for i := from; i < to; i++ {
			h := uint32At(hashesAt + 4*i)
			if int(h>>(32-BucketBits)) != bucket || i > 0 && h <= uint32At(hashesAt+4*(i-1)) {
				t.Fatalf("word %d: got the hash %08x in bucket %d", i, h, bucket)
			}
		}
	}
	if last := uint16At(bucketsAt + 2*Buckets); last != n {
		t.Errorf("got %d words in the buckets, want %d", last, n)
	}
}

func TestLookup_VectorsHaveOneLength(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching("[a-z]{2,5}").Draw(t, "word")
		v, ok := Lookup([]byte(word))
		if !ok {
			return
		}
		found++
		var sum Sum
		sum.Add(&v)
		if got := sum.Length(); math.Abs(got-Length) > 4 {
			t.Errorf("%q: got the length %.1f, want %d", word, got, Length)
		}
		if got := Cosine(&v, &v); got < 0.95 || got > 1 {
			t.Errorf("%q: got the cosine %.3f with itself, want about 1", word, got)
		}
		if got, ok := sum.Vector(); !ok || Cosine(&v, &got) < 0.95 {
			t.Errorf("%q: got another vector from a sum of one", word)
		}
	})
	if found == 0 {
		t.Log("got no word, want at least one")
	}
}

func TestLookup_FindsWordsOfWorkAlone(t *testing.T) {
	for word := range strings.FieldsSeq("invoice refund salary password laptop parcel checkout warranty database privacy") {
		if _, ok := Lookup([]byte(word)); !ok {
			t.Errorf("got no vector of %s", word)
		}
	}
	for word := range strings.FieldsSeq("the what please Invoice carvajal para nuestra zzqxv") {
		if _, ok := Lookup([]byte(word)); ok {
			t.Errorf("got a vector of %q, want none", word)
		}
	}
	if _, ok := Lookup(nil); ok {
		t.Error("got a vector of the empty word")
	}
}

// The similarities change if the projection does: then increase the version of the training
// of package lexical.
func TestCosine_Golden(t *testing.T) {
	pairs := "salary wages, salary volcano, refund payment, laptop computer, delete edit, vacation holiday, open close, invoice parcel"
	want := `salary wages 0.69
salary volcano -0.10
refund payment 0.72
laptop computer 0.73
delete edit 0.73
vacation holiday 0.65
open close 0.19
invoice parcel 0.31
`
	var got bytes.Buffer
	for pair := range strings.SplitSeq(pairs, ", ") {
		a, b, _ := strings.Cut(pair, " ")
		v, _ := Lookup([]byte(a))
		w, _ := Lookup([]byte(b))
		fmt.Fprintf(&got, "%s %.2f\n", pair, Cosine(&v, &w))
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("similarities (-want +got):\n%s", diff)
	}
}

func TestSum_VectorOfNothing(t *testing.T) {
	var sum Sum
	if _, ok := sum.Vector(); ok || sum.Length() != 0 {
		t.Errorf("got a vector of an empty sum of length %v, want none", sum.Length())
	}
}

package costs

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func rat(t *testing.T, s string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		t.Fatalf("%q is no number", s)
	}
	return r
}

func TestParseAmount(t *testing.T) {
	tests := []struct {
		name, in string
		mark     byte
		want     string // "" = refused
	}{
		{"whole", "12", '.', "12"},
		{"decimals", "12.345", '.', "12.345"},
		{"many decimals stay exact", "0.000000583333", '.', "0.000000583333"},
		{"comma", "12,50", ',', "12.50"},
		{"groups", "1,234,567.80", '.', "1234567.80"},
		{"groups the other way", "1.234.567,80", ',', "1234567.80"},
		{"groups by spaces", "1 234,5", ',', "1234.5"},
		{"groups by no-break spaces", "1\u00a0234\u202f567,5", ',', "1234567.5"},
		{"groups by apostrophes", "1'234.50", '.', "1234.50"},
		{"only decimals", ".5", '.', "0.5"},
		{"a mark at the end", "5.", '.', "5"},
		{"minus in front", "-3.20", '.', "-3.20"},
		{"minus behind", "3.20-", '.', "-3.20"},
		{"a typographic minus", "−3.20", '.', "-3.20"},
		{"brackets", "(3.20)", '.', "-3.20"},
		{"plus", "+3", '.', "3"},
		{"currency in front", "R$ 1.234,50", ',', "1234.50"},
		{"currency behind", "12.30 EUR", '.', "12.30"},
		{"sign and currency", "-$12", '.', "-12"},
		{"currency and sign", "€-12", '.', "-12"},
		{"exponent", "1.25E-05", '.', "0.0000125"},
		{"positive exponent", "2e+3", '.', "2000"},

		{"empty", "", '.', ""},
		{"text", "abc", '.', ""},
		{"a number and text", "12 apples", '.', ""},
		{"two marks", "1.2.3", '.', ""},
		{"a short group", "1,23", '.', ""},
		{"a long first group", "1234,567.0", '.', ""},
		{"a doubled mark", "1,,234", '.', ""},
		{"a group mark in front", ",123", '.', ""},
		{"a sign alone", "-", '.', ""},
		{"a mark alone", ".", '.', ""},
		{"currency alone", "USD", '.', ""},
		{"two signs", "--1", '.', ""},
		{"an exponent alone", "e5", '.', ""},
		{"a huge exponent", "1e999999999", '.', ""},
		{"an open exponent", "1e", '.', ""},
		{"too many digits", strings.Repeat("9", maxDigits+1), '.', ""},
		{"other digits", "١٢", '.', ""},
		{"hexadecimal", "0x10", '.', ""},
		{"infinity", "Inf", '.', ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseAmount(tt.in, tt.mark)
			switch {
			case tt.want == "" && err == nil:
				t.Errorf("parseAmount(%q) = %s, want it refused", tt.in, got.RatString())
			case tt.want != "" && err != nil:
				t.Errorf("parseAmount(%q): %v, want %s", tt.in, err, tt.want)
			case tt.want != "" && got.Cmp(rat(t, tt.want)) != 0:
				t.Errorf("parseAmount(%q) = %s, want %s", tt.in, got.RatString(), tt.want)
			}
		})
	}
}

func TestDecimalMark(t *testing.T) {
	tests := []struct {
		name      string
		values    []string
		delimiter rune
		want      byte
	}{
		{"two decimals", []string{"12.50"}, ',', '.'},
		{"two decimals by comma", []string{"12,50"}, ';', ','},
		{"both marks", []string{"1.234,50"}, ',', ','},
		{"both marks the other way", []string{"1,234.50"}, ',', '.'},
		{"a mark twice groups", []string{"1.234.567"}, ',', ','},
		{"a later value decides", []string{"1,234", "5", "0,5"}, ',', ','},
		{"a zero before it is no group", []string{"0,125"}, ',', ','},
		{"four digits before it are no group", []string{"1234.567"}, ';', '.'},
		{"an exponent is no decimal", []string{"1.5E-05"}, ';', '.'},
		{"all fit both, commas", []string{"1,234"}, ',', '.'},
		{"all fit both, semicolons", []string{"1,234", "2.345"}, ';', ','},
		{"whole numbers", []string{"12", "7"}, ',', '.'},
		{"no values", nil, ',', '.'},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := decimalMark(tt.values, tt.delimiter); got != tt.want {
				t.Errorf("decimalMark(%q) = %q, want %q", tt.values, got, tt.want)
			}
		})
	}
}

func TestMoney(t *testing.T) {
	tests := []struct{ in, want string }{
		{"0", "0.00"},
		{"1.005", "1.01"},
		{"-1.005", "-1.01"},
		{"999.999", "1,000.00"},
		{"1234567.8", "1,234,567.80"},
		{"-123456.78", "-123,456.78"},
		{"-0.001", "0.00"},
	}
	for _, tt := range tests {
		if got := money(rat(t, tt.in)); got != tt.want {
			t.Errorf("money(%s) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestPercent(t *testing.T) {
	tests := []struct{ name, part, whole, want string }{
		{"a third", "1", "3", "33.3 %"},
		{"all", "2", "2", "100.0 %"},
		{"a credit", "-1", "4", "-25.0 %"},
		{"of nothing", "1", "0", "–"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := percent(rat(t, tt.part), rat(t, tt.whole)); got != tt.want {
				t.Errorf("percent(%s, %s) = %q, want %q", tt.part, tt.whole, got, tt.want)
			}
		})
	}
}

// What money prints with more decimals reads back as the same number, however
// it is grouped and marked.
func TestAmountsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cents := rapid.Int64Range(-1e15, 1e15).Draw(t, "cents")
		want := big.NewRat(cents, 100)
		s := money(want)
		mark := byte('.')
		if rapid.Bool().Draw(t, "comma") {
			s = strings.NewReplacer(".", ",", ",", ".").Replace(s)
			mark = ','
		}
		if got := decimalMark([]string{s}, ','); got != mark {
			t.Fatalf("decimalMark(%q) = %q, want %q", s, got, mark)
		}
		got, err := parseAmount(s, mark)
		if err != nil || got.Cmp(want) != 0 {
			t.Fatalf("parseAmount(%q) = %v, %v; want %s", s, got, err, want.RatString())
		}
	})
}

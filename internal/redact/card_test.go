package redact

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// ends returns the end of the value that starts at ⟦, and the expected end ⟧, or 0.
func marked(text string) (plain string, start, end int) {
	start = max(0, strings.Index(text, "⟦"))
	plain = strings.Replace(text, "⟦", "", 1)
	end = max(0, strings.Index(plain, "⟧"))
	return strings.Replace(plain, "⟧", "", 1), start, end
}

// digitsOf returns the values of the digits.
func digitsOf(s string) []byte {
	digits := make([]byte, len(s))
	for i := range digits {
		digits[i] = s[i] - '0'
	}
	return digits
}

// Networks with their lengths: other lengths do not match, even with a correct check digit.
func TestIsNetworkNumber(t *testing.T) {
	for _, tc := range []struct {
		name, first string
		lengths     []int
	}{
		{"Visa", "4", []int{13, 16, 19}},
		{"Mastercard", "51", []int{16}},
		{"Mastercard, new", "2221", []int{16}},
		{"below Mastercard's new", "2220", nil},
		{"above Mastercard's new", "2721", nil},
		{"Mir", "2202", []int{16, 17, 18, 19}},
		{"American Express", "34", []int{15}},
		{"Diners Club", "36", []int{14, 15, 16, 17, 18, 19}},
		{"JCB", "3530", []int{16, 17, 18, 19}},
		{"JCB, old", "2131", []int{15}},
		{"UATP", "1", []int{15}},
		{"Maestro", "50", []int{12, 13, 14, 15, 16, 17, 18, 19}},
		{"Discover", "6011", []int{12, 13, 14, 15, 16, 17, 18, 19}},
		{"nobody", "0", nil},
		{"nobody", "7", nil},
		{"nobody", "8", nil},
		{"nobody", "9", nil},
	} {
		t.Run(tc.name+" "+tc.first, func(t *testing.T) {
			given := map[int]bool{}
			for _, n := range tc.lengths {
				given[n] = true
			}
			for n := minCardDigits; n <= maxCardDigits; n++ {
				number := tc.first + strings.Repeat("0", n-len(tc.first))
				if got := isNetworkNumber(digitsOf(number)); got != given[n] {
					t.Errorf("%d digits: got %v, want %v", n, got, given[n])
				}
			}
		})
	}
}

// The check digit detects every wrong digit, and exactly one of ten is correct.
func TestCheckLuhn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := some(t, "body", decimalDigits, rapid.IntRange(minCardDigits-1, maxCardDigits-1).Draw(t, "length"))
		number := body + string(checkDigit(body))
		if sum := strings.Trim(number, "0"); sum != "" && !checkLuhn(digitsOf(number)) {
			t.Fatalf("%s: got false, want true", number)
		}
		at := rapid.IntRange(0, len(number)-1).Draw(t, "at")
		wrong := []byte(number)
		wrong[at] = '0' + (wrong[at]-'0'+byte(rapid.IntRange(1, 9).Draw(t, "by")))%10
		if checkLuhn(digitsOf(string(wrong))) {
			t.Fatalf("%s, of %s: got true, want false", wrong, number)
		}
	})
	if checkLuhn(make([]byte, 16)) {
		t.Error("zeros only: got true, want false")
	}
}

func TestCardEnd(t *testing.T) {
	for _, text := range []string{
		"⟦4111111111111111⟧",
		"⟦4111 1111 1111 1111⟧ 99",
		"⟦4111-1111-1111-1111⟧.",
		"⟦4111 1111-1111 1111⟧",
		"⟦4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1⟧",
		"pay ⟦4111111111111111⟧, please",
		"card ⟦9876543210987658⟧",
		"order ⟦9876543210987658",
		"⟦4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 7 7",
		"7 ⟦4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
		"⟦4111  1111  1111  1111",
		"⟦4111111111111111a",
		"⟦4111111111111111_",
		"⟦4111111111111111.5",
		"a⟦4111111111111111",
		"+⟦4111111111111111",
		"0.⟦4111111111111111",
		"⟦41111111111111111111",
		"⟦4111",
	} {
		t.Run(text, func(t *testing.T) {
			plain, start, want := marked(text)
			if got := cardEnd(plain, start); got != want {
				t.Errorf("got %d, want %d", got, want)
			}
		})
	}
}

func TestIBANEnd(t *testing.T) {
	for _, text := range []string{
		"⟦DE89370400440532013000⟧",
		"⟦DE89 3704 0044 0532 0130 00⟧ x",
		"⟦DE89-3704-0044-0532-0130-00⟧.",
		"⟦de89370400440532013000⟧",
		"⟦DE89 3704 0044 0532 0130 00⟧",
		"⟦DE89370400440532013001",
		"⟦DE88370400440532013000",
		"⟦DE893704004405320130001",
		"⟦DE89370400440532013000x",
		"⟦DE89  3704 0044 0532 0130 00",
		"⟦DE8937040044053201300",
		"⟦XX89370400440532013000",
		"⟦DE89",
	} {
		t.Run(text, func(t *testing.T) {
			plain, start, want := marked(text)
			if got := ibanEnd(plain, start); got != want {
				t.Errorf("got %d, want %d", got, want)
			}
		})
	}
	for country, n := range ibanLengths {
		if n < 15 || n > 34 || len(country) != 2 || country != strings.ToUpper(country) {
			t.Errorf("%q: got %d characters, want 15 to 34 (ISO 13616)", country, n)
		}
	}
}

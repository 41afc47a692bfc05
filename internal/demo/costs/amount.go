package costs

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
)

// Limits of a number in a file. They keep an amount like 1e999999999 from
// filling the memory.
const (
	maxDigits   = 30
	maxExponent = 18
)

var errNotAmount = errors.New("is not an amount")

// parseAmount reads a number whose decimal mark is known. It takes a sign in
// front, behind or as brackets, currency signs and codes around the number, and
// groups of three digits.
//
//	parseAmount("R$ -1.234,50", ',') = -2469/2
func parseAmount(s string, mark byte) (*big.Rat, error) {
	digits, negative := bare(s)
	digits, exponent, err := cutExponent(digits)
	if err != nil {
		return nil, err
	}
	whole, fraction, _ := strings.Cut(digits, string(mark))
	whole, err = joinGroups(whole, mark)
	if err != nil || !allDigits(fraction) || whole == "" && fraction == "" || len(whole)+len(fraction) > maxDigits {
		return nil, errNotAmount
	}
	n, ok := new(big.Int).SetString("0"+whole+fraction, 10)
	if !ok {
		return nil, errNotAmount
	}
	r := scale(n, exponent-len(fraction))
	if negative {
		r.Neg(r)
	}
	return r, nil
}

// scale is n × 10^exponent.
func scale(n *big.Int, exponent int) *big.Rat {
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exponent, -exponent))), nil)
	if exponent >= 0 {
		return new(big.Rat).SetInt(n.Mul(n, power))
	}
	return new(big.Rat).SetFrac(n, power)
}

// bare strips sign, currency and white space from around a number.
func bare(s string) (digits string, negative bool) {
	s = strings.TrimSpace(s)
	if inner, ok := strings.CutPrefix(s, "("); ok && strings.HasSuffix(inner, ")") {
		s, negative = inner[:len(inner)-1], true
	}
	s = trimCurrency(s)
	for _, minus := range []string{"-", "−"} {
		if rest, ok := strings.CutPrefix(s, minus); ok {
			s, negative = rest, !negative
		} else if rest, ok := strings.CutSuffix(s, minus); ok {
			s, negative = rest, !negative
		}
	}
	return trimCurrency(strings.TrimPrefix(s, "+")), negative
}

// currencySigns may stand before or behind a number.
var currencySigns = []string{
	"US$", "R$", "$", "€", "£", "¥", "₹",
	"USD", "EUR", "GBP", "BRL", "CNY", "JPY", "MXN", "ARS", "CLP", "COP", "CHF", "CAD", "AUD", "INR",
}

func trimCurrency(s string) string {
	const spaces = " \u00a0\u202f"
	s = strings.Trim(s, spaces)
	for _, sign := range currencySigns {
		if rest := strings.TrimSuffix(strings.TrimPrefix(s, sign), sign); rest != s {
			return strings.Trim(rest, spaces)
		}
	}
	return s
}

// cutExponent splits 1.2E-05, as exports write small amounts.
func cutExponent(s string) (string, int, error) {
	at := strings.IndexAny(s, "eE")
	if at < 0 {
		return s, 0, nil
	}
	n, err := strconv.Atoi(s[at+1:])
	if err != nil || n > maxExponent || n < -maxExponent {
		return "", 0, errNotAmount
	}
	return s[:at], n, nil
}

// joinGroups drops what groups the digits before the decimal mark, if the
// groups are whole: 1.234.567 or 1 234 567, never 12.34.
func joinGroups(s string, mark byte) (string, error) {
	group := '.'
	if mark == '.' {
		group = ','
	}
	parts := strings.FieldsFunc(s, func(r rune) bool {
		return r == group || r == ' ' || r == '\u00a0' || r == '\u202f' || r == '\''
	})
	if len(parts) <= 1 && allDigits(s) {
		return s, nil
	}
	seps := 0
	for i, p := range parts {
		if !allDigits(p) || i == 0 && len(p) > 3 || i > 0 && len(p) != 3 {
			return "", errNotAmount
		}
		seps += len(p)
	}
	if len([]rune(s)) != seps+len(parts)-1 { // a mark doubled, in front or behind
		return "", errNotAmount
	}
	return strings.Join(parts, ""), nil
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// decimalMark finds out whether a column writes 1,234.50 or 1.234,50. A value
// like 1,234 fits both; when all do, the file's delimiter decides, because who
// separates columns by semicolons does so for want of the comma.
func decimalMark(values []string, delimiter rune) byte {
	for _, v := range values {
		if mark := markOf(v); mark != 0 {
			return mark
		}
	}
	if delimiter == ';' {
		return ','
	}
	return '.'
}

// markOf is the decimal mark that one value shows, 0 when it fits both.
func markOf(v string) byte {
	digits, _ := bare(v)
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		digits = digits[:i]
	}
	dots, commas := strings.Count(digits, "."), strings.Count(digits, ",")
	at := strings.LastIndexAny(digits, ".,")
	switch {
	case at < 0:
		return 0
	case dots > 0 && commas > 0: // the last one
		return digits[at]
	case dots > 1:
		return ','
	case commas > 1:
		return '.'
	}
	// One mark: three digits behind it may be a group, unless it starts with 0.
	if len(digits)-at-1 == 3 && at > 0 && at <= 3 && digits[0] != '0' {
		return 0
	}
	return digits[at]
}

// money prints an amount with two decimals and groups of three digits.
func money(r *big.Rat) string {
	s := r.FloatString(2)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 6; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if s == "0.00" {
		sign = ""
	}
	return sign + s
}

// percent prints a share of a whole; "–" when the whole is zero.
func percent(part, whole *big.Rat) string {
	if whole.Sign() == 0 {
		return "–"
	}
	r := new(big.Rat).Quo(part, whole)
	return r.Mul(r, big.NewRat(100, 1)).FloatString(1) + " %"
}

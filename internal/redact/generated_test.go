package redact

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Generated values, and values with one error.

const (
	small   = "abcdefghijklmnopqrstuvwxyz"
	capital = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

func ofAllKinds(t testing.TB) *Redactor {
	t.Helper()
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// some generates n bytes of an alphabet.
func some(t *rapid.T, name, alphabet string, n int) string {
	return string(rapid.SliceOfN(rapid.SampledFrom([]byte(alphabet)), n, n).Draw(t, name))
}

// checkMasked checks that a value in a sentence is masked as a whole.
func checkMasked(t *rapid.T, r *Redactor, label, value string) {
	for _, sentence := range []string{"%", "it is % or so", "(%)", "x: %, y", "\"%\"", "前%后"} {
		before, after, _ := strings.Cut(sentence, "%")
		if got, want := r.RedactText(before+value+after), before+"["+label+"]"+after; got != want {
			t.Fatalf("%q: got %q, want %q", before+value+after, got, want)
		}
	}
}

// checkDigit completes a card number (ISO/IEC 7812-1 annex B).
func checkDigit(number string) byte {
	sum := 0
	for i := range len(number) {
		v := int(number[len(number)-1-i] - '0')
		if i%2 == 0 {
			v *= 2
			v = v/10 + v%10
		}
		sum += v
	}
	return byte('0' + (10-sum%10)%10)
}

// grouped splits digits into groups of these sizes.
func grouped(digits, separator string, sizes ...int) string {
	var groups []string
	for _, n := range sizes {
		if n >= len(digits) {
			break
		}
		groups = append(groups, digits[:n])
		digits = digits[n:]
	}
	return strings.Join(append(groups, digits), separator)
}

func TestGeneratedCards(t *testing.T) {
	r := ofAllKinds(t)
	networks := []struct {
		name   string
		prefix []string
		length int
	}{
		{"Visa", []string{"4"}, 16},
		{"Visa, old", []string{"4"}, 13},
		{"Visa, long", []string{"4"}, 19},
		{"Mastercard", []string{"51", "55", "2221", "2720"}, 16},
		{"American Express", []string{"34", "37"}, 15},
		{"Diners Club", []string{"300", "36", "38"}, 14},
		{"Discover", []string{"6011", "644", "65"}, 16},
		{"JCB", []string{"3528", "3589"}, 16},
		{"JCB, old", []string{"1800", "2131"}, 15},
		{"UnionPay", []string{"62"}, 19},
		{"Maestro", []string{"5018", "5893", "6304", "6759"}, 12},
		{"Mir", []string{"2200", "2204"}, 16},
	}
	for _, n := range networks {
		t.Run(n.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				body := rapid.SampledFrom(n.prefix).Draw(t, "prefix")
				body += some(t, "digits", decimalDigits, n.length-1-len(body))
				check := checkDigit(body)
				checkMasked(t, r, "CARD", body+string(check))
				if n.length > 13 {
					checkMasked(t, r, "CARD", grouped(body+string(check), " ", 4, 4, 4, 4))
					checkMasked(t, r, "CARD", grouped(body+string(check), "-", 4, 6))
				}
				wrong := '0' + (check-'0'+byte(rapid.IntRange(1, 9).Draw(t, "off by")))%10
				if got := r.RedactText(body + string(wrong)); strings.Contains(got, "[CARD]") {
					t.Fatalf("%s%c: got %q, want a failed check", body, wrong, got)
				}
			})
		})
	}
}

func TestGeneratedIBANs(t *testing.T) {
	r := ofAllKinds(t)
	countries := slices.Sorted(maps.Keys(ibanLengths))
	rapid.Check(t, func(t *rapid.T) {
		country := rapid.SampledFrom(countries).Draw(t, "country")
		account := some(t, "account", decimalDigits+decimalDigits+capital, int(ibanLengths[country])-4)
		// Modulo 97 as in the standard: letters as two digits, the first four characters at the
		// end.
		rest := 0
		for _, c := range account + country + "00" {
			digits := string(c)
			if c >= 'A' {
				digits = fmt.Sprint(c - 'A' + 10)
			}
			for _, d := range digits {
				rest = (rest*10 + int(d-'0')) % 97
			}
		}
		iban := fmt.Sprintf("%s%02d%s", country, 98-rest, account)
		sizes := []int{4, 4, 4, 4, 4, 4, 4, 4}
		checkMasked(t, r, "IBAN", iban)
		checkMasked(t, r, "IBAN", grouped(iban, " ", sizes...))
		checkMasked(t, r, "IBAN", grouped(iban, "-", sizes...))
		checkMasked(t, r, "IBAN", strings.ToLower(iban))
		wrong := fmt.Sprintf("%s%02d%s", country, (98-rest)%97+1, account)
		if got := r.RedactText(wrong); strings.Contains(got, "[IBAN]") && wrong != iban {
			t.Fatalf("%s: got %q, want a failed check", wrong, got)
		}
	})
}

func TestGeneratedAddresses(t *testing.T) {
	r := ofAllKinds(t)
	rapid.Check(t, func(t *rapid.T) {
		four := netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "four")))
		checkMasked(t, r, "IP", four.String())
		checkMasked(t, r, "IP", four.String()+"/"+fmt.Sprint(rapid.IntRange(0, 32).Draw(t, "bits")))

		bytes := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "six")
		for i := range rapid.IntRange(0, 6).Draw(t, "zeros") {
			bytes[4+2*i%12], bytes[5+2*i%12] = 0, 0
		}
		bytes[0], bytes[1] = 0x20, 0x01 // assigned numbers start with a digit
		six := netip.AddrFrom16([16]byte(bytes))
		checkMasked(t, r, "IP", six.String())
		checkMasked(t, r, "IP", six.StringExpanded())
		checkMasked(t, r, "IP", strings.ToUpper(six.StringExpanded()))
	})
}

func TestGeneratedEmails(t *testing.T) {
	r := ofAllKinds(t)
	local := rapid.StringMatching(`[a-z0-9][a-zA-Z0-9._%+-]{0,20}`)
	label := rapid.StringMatching(`[a-z0-9][a-z0-9-]{0,10}[a-z0-9]`)
	rapid.Check(t, func(t *rapid.T) {
		address := local.Draw(t, "local") + "@" + label.Draw(t, "host") + "." +
			rapid.SampledFrom([]string{"com", "org", "co.uk", "com.br", "io", "museum", "xn--p1ai"}).Draw(t, "top")
		if strings.HasPrefix(address, "git@") || strings.Contains(r.RedactText(strings.Split(address, "@")[0]), "]") {
			t.Skip("a repository, or a value in front of the @")
		}
		checkMasked(t, r, "EMAIL", address)
	})
}

func TestGeneratedPhones(t *testing.T) {
	r := ofAllKinds(t)
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.SampledFrom([]string{"1", "44", "49", "55", "351", "86", "91", "34", "33", "81", "972"}).Draw(t, "country")
		area := rapid.SampledFrom([]string{"11", "415", "20", "916", "212"}).Draw(t, "area")
		rest := some(t, "digits", decimalDigits[2:], 7)
		for _, number := range []string{
			"+" + code + area + rest,
			"+" + code + " " + area + " " + rest[:3] + " " + rest[3:],
			"+" + code + "-" + area + "-" + rest[:3] + "-" + rest[3:],
			"+" + code + " (" + area + ") " + rest[:3] + "-" + rest[3:],
			"(" + area + ") " + rest[:3] + "-" + rest[3:],
			"0" + area + " " + rest,
		} {
			checkMasked(t, r, "PHONE", number)
		}
		for _, lead := range []string{"call me at ", "phone: ", "meu telefone é ", "móvil ", "WhatsApp ", "sms to "} {
			for _, number := range []string{area + rest, area + " " + rest, area + "." + rest, rest[:3] + " " + rest[3:]} {
				if got, want := r.RedactText(lead+number), lead+"[PHONE]"; got != want {
					t.Fatalf("%q: got %q, want %q", lead+number, got, want)
				}
			}
		}
	})
}

func TestGeneratedTokens(t *testing.T) {
	r := ofAllKinds(t)
	for _, s := range slices.Concat(tokenShapes[:], dottedShapes[:]) {
		t.Run(s.prefix, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := max(s.minLength, minToken) + rapid.IntRange(0, 30).Draw(t, "more")
				token := s.prefix + some(t, "digit", decimalDigits, 1) + some(t, "letter", small, 1) + some(t, "rest", decimalDigits+small+capital, n-2)
				checkMasked(t, r, "SECRET", token)
				checkMasked(t, r, "SECRET", token+some(t, "end", decimalDigits, 3))
			})
		})
	}
}

func TestGeneratedPasswords(t *testing.T) {
	r := ofAllKinds(t)
	rapid.Check(t, func(t *rapid.T) {
		password := some(t, "letters", small+capital, 4) + some(t, "digits", decimalDigits, 2) + some(t, "marks", "!#%*+~^", 1) + some(t, "more", small+capital+decimalDigits, 4)
		for _, form := range []string{
			"password=%", "password: %", "PASSWORD = \"%\"", "{\"password\":\"%\"}", "db_passwd='%'", "my password is %", "pwd:%", "senha: %", "--password %",
		} {
			before, after, _ := strings.Cut(form, "%")
			if got, want := r.RedactText(before+password+after), before+"[SECRET]"+after; got != want {
				t.Fatalf("%q: got %q, want %q", before+password+after, got, want)
			}
		}
	})
}

// Identifiers with correct check digits are masked in each notation, and not with another check
// digit.
func TestGeneratedNationalIDs(t *testing.T) {
	r := ofAllKinds(t)
	eleven := func(t *rapid.T, body string, weights ...int) string {
		sum := 0
		for i, w := range weights {
			sum += int(body[i]-'0') * w
		}
		return body + string(byte('0'+(11-sum%11)%11%10))
	}
	wantWrong := func(t *rapid.T, label, value string) {
		if got := r.RedactText(value); strings.Contains(got, "["+label+"]") {
			t.Fatalf("%s: got %q, want a failed check", value, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		cpf := "1" + some(t, "cpf", decimalDigits, 7) + "2"
		cpf = eleven(t, cpf, 10, 9, 8, 7, 6, 5, 4, 3, 2)
		cpf = eleven(t, cpf, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2)
		checkMasked(t, r, "CPF", cpf)
		checkMasked(t, r, "CPF", cpf[:3]+"."+cpf[3:6]+"."+cpf[6:9]+"-"+cpf[9:])
		wantWrong(t, "CPF", cpf[:10]+string('0'+(cpf[10]-'0'+1)%10))

		cnpj := "1" + some(t, "cnpj", decimalDigits+capital, 10) + "2"
		cnpj = eleven(t, cnpj, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)
		cnpj = eleven(t, cnpj, 6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)
		shown := cnpj[:2] + "." + cnpj[2:5] + "." + cnpj[5:8] + "/" + cnpj[8:12] + "-"
		checkMasked(t, r, "CNPJ", shown+cnpj[12:])
		wantWrong(t, "CNPJ", shown+cnpj[12:13]+string('0'+(cnpj[13]-'0'+1)%10))

		nif := eleven(t, "2"+some(t, "nif", decimalDigits, 7), 9, 8, 7, 6, 5, 4, 3, 2)
		if got, want := r.RedactText("NIF: "+nif), "NIF: [NIF]"; got != want {
			t.Fatalf("%s: got %q, want %q", nif, got, want)
		}
		wantWrong(t, "NIF", "NIF: "+nif[:8]+string('0'+(nif[8]-'0'+1)%10))

		number := rapid.IntRange(1_000_000, 9_999_999).Draw(t, "number")
		const letters = "TRWAGMYFPDXBNJZSQVHLCKE"
		for prefix, first := range map[string]int{"4": 40_000_000, "X": 0, "Y": 10_000_000, "Z": 20_000_000} {
			n := first + number
			checkMasked(t, r, "DNI", fmt.Sprint(prefix, number, string(letters[n%23])))
			checkMasked(t, r, "DNI", fmt.Sprint(prefix, number, "-", string(letters[n%23])))
			wantWrong(t, "DNI", fmt.Sprint(prefix, number, string(letters[(n+1)%23])))
		}

		ssn := "4" + some(t, "area", decimalDigits, 2) + "-1" + some(t, "group", decimalDigits, 1) + "-3" + some(t, "serial", decimalDigits, 3)
		checkMasked(t, r, "SSN", ssn)
	})
}

package redact_test

import (
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/redact"
)

// sample is a text with values between ⟦ and ⟧, and their kind.
type sample struct{ kind, text string }

// plain returns the text and the expected result of RedactText.
func (s sample) plain() (text, want string) {
	want = s.text
	for {
		before, rest, found := strings.Cut(want, "⟦")
		if !found {
			break
		}
		_, after, _ := strings.Cut(rest, "⟧")
		want = before + "[" + strings.ToUpper(s.kind) + "]" + after
	}
	return strings.NewReplacer("⟦", "", "⟧", "").Replace(s.text), want
}

var samples = []sample{
	{redact.Email, "⟦bob@example.com⟧"},
	{redact.Email, "mailto:⟦bob@example.com⟧?subject=x"},
	{redact.Email, "Bob <⟦bob.smith+news@mail.example.co.uk⟧>, hi"},
	{redact.Email, "my mail:⟦bob@example.com⟧."},
	{redact.Email, "⟦o'brien@example.ie⟧ and '⟦ann@example.ie⟧'"},
	{redact.Email, `⟦"john smith"@example.com⟧`},
	{redact.Email, "⟦josé.núñez@exämple.es⟧"},
	{redact.Email, "⟦иван@пример.рф⟧"},
	{redact.Email, "联系⟦bob@example.com⟧谢谢"},
	{redact.Email, "⟦用户@例子.公司⟧"},
	{redact.Email, "⟦user@xn--80ak6aa92e.com⟧ ⟦a@xn--d1acufc.xn--p1ai⟧"},
	{redact.Email, "⟦b\u200bob@exa\u00admple.com⟧"},
	{redact.Email, "⟦ｂｏｂ＠ｅｘａｍｐｌｅ．ｃｏｍ⟧"},
	{redact.Email, "⟦bob@a.b.c.example.com⟧_x ⟦ann@b.com⟧/ ⟦eve@c.com2⟧"},
	{redact.Email, "⟦" + strings.Repeat("x", 300) + "@example.com⟧"},

	{redact.Phone, "⟦+1 (415) 555-0132⟧"},
	{redact.Phone, "⟦+14155550132⟧, ⟦+55 (11) 98456-5666⟧ or ⟦+44 20 7946 0958⟧"},
	{redact.Phone, "⟦+46 (0)8 928 571 38⟧"},
	{redact.Phone, "⟦0049 30 1234567⟧"},
	{redact.Phone, "⟦(415)555-0132 ext. 77⟧, ⟦345-899-3560x4587⟧"},
	{redact.Phone, "⟦1-800-555-0199⟧ or ⟦415.555.0132⟧"},
	{redact.Phone, "⟦(11) 98456-5666⟧ e ⟦11 98456-5666⟧"},
	{redact.Phone, "⟦03.93.92.16.85⟧"},
	{redact.Phone, "⟦0 (532) 1234567⟧, ⟦0-532-123-45-67⟧"},
	{redact.Phone, "⟦138-1234-5678⟧ or ⟦090-1234-5678⟧"},
	{redact.Phone, "⟦09171234567⟧"},
	{redact.Phone, "⟦415-555-0132⟧,⟦415-555-0133⟧/⟦+14155550134⟧:⟦(415) 555-0135⟧"},
	{redact.Phone, "call ⟦4155550132⟧"},
	{redact.Phone, "ligue ⟦11984565666⟧"},
	{redact.Phone, "phone: ⟦555 0132⟧"},
	{redact.Phone, "user_phone=⟦5550132⟧"},
	{redact.Phone, "⟦416 60 039⟧ office"},
	{redact.Phone, "tel:⟦+14155550132⟧, https://wa.me/⟦5511984565666⟧"},
	{redact.Phone, "my number is ⟦13812345678⟧"},
	{redact.Phone, "电话⟦13812345678⟧"},
	{redact.Phone, "⟦＋１ ４１５ ５５５ ０１３２⟧"},
	{redact.Phone, "⟦+1\u00a0415\u2011555\u20110132⟧"},
	{redact.Phone, "⟦+٩٦٦ ٥٠ ١٢٣ ٤٥٦٧⟧"},

	{redact.Card, "⟦4111111111111111⟧"},
	{redact.Card, "card=⟦4111-1111-1111-1111⟧, exp 12/28"},
	{redact.Card, "⟦4111 1111 1111 1111⟧ 123"},
	{redact.Card, "⟦4012888888881881⟧ ⟦4012-8888-8888-1881⟧ ⟦4012 8888 8888 1881⟧"},
	{redact.Card, "⟦3782 822463 10005⟧"},
	{redact.Card, "⟦4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1⟧"},
	{redact.Card, "⟦4111\u200b1111 1111 1111⟧"},
	{redact.Card, "⟦３７８２８２２４６３１０００５⟧"},
	{redact.Card, "Card no.⟦5555555555554444⟧!"},
	{redact.Card, "my card is ⟦9876543210987658⟧"},

	{redact.IBAN, "⟦DE89370400440532013000⟧"},
	{redact.IBAN, "iban:⟦DE89 3704 0044 0532 0130 00⟧."},
	{redact.IBAN, "⟦AL47-2121-1009-0000-0002-3569-8741⟧"},
	{redact.IBAN, "⟦gb82west12345698765432⟧"},
	{redact.IBAN, "⟦FR14 2004 1010 0505 0001 3M02 606⟧ and ⟦NO9386011117947⟧"},

	{redact.IP, "⟦192.168.1.17⟧:8080"},
	{redact.IP, "http://⟦10.0.0.7⟧/x from ⟦8.8.8.8⟧."},
	{redact.IP, "⟦192.168.1.0/24⟧ via ⟦2001:db8::/32⟧"},
	{redact.IP, "http://[⟦2001:db8::1⟧]:443/ and ⟦fe80::1%eth0⟧"},
	{redact.IP, "⟦2345:0425:2CA1:0000:0000:0567:5673:23b5⟧"},
	{redact.IP, "⟦::ffff:192.0.2.1⟧, ⟦::1⟧."},
	{redact.IP, "⟦１９２.168.1.1⟧"},

	{redact.CPF, "meu CPF é ⟦111.444.777-35⟧, cpf:⟦11144477735⟧; ⟦111444777-35⟧ ou ⟦111 444 777 35⟧"},
	{redact.CNPJ, "CNPJ ⟦11.222.333/0001-81⟧, ⟦11222333000181⟧ e ⟦11222333/0001-81⟧"},
	{redact.CNPJ, "⟦12.ABC.345/01DE-35⟧, ⟦12.abc.345/01de-35⟧; CNPJ: ⟦12ABC34501DE35⟧"},
	{redact.NIF, "o meu NIF é ⟦123456789⟧, contribuinte n.º ⟦123 456 789⟧, ⟦123456789⟧ NIF, VAT PT⟦123456789⟧"},
	{redact.DNI, "mi DNI es ⟦12345678Z⟧, ⟦12345678-z⟧, ⟦12.345.678-Z⟧ o ⟦12.345.678 Z⟧"},
	{redact.DNI, "el pedido de mi NIE ⟦X1234567L⟧, ⟦x-1234567-l⟧, ⟦Y1234567X⟧"},
	{redact.SSN, "SSN: ⟦536-90-4399⟧, ⟦536 90 4399⟧, ⟦536.90.4399⟧; social security number ⟦536904399⟧"},

	{redact.Secret, "⟦AKIAIOSFODNN7EXAMPLE⟧"},
	{redact.Secret, "⟦AIzaSyA1234567890abcdefghijklmnopqrstuv⟧"},
	{redact.Secret, "⟦sk-ant-api03-abcDEF1234567890abcDEF1234567890⟧, ⟦sk-abcdefghij0123456789⟧"},
	{redact.Secret, "⟦ghp_abcdefghijklmnopqrstuvwxyz0123456789⟧"},
	{redact.Secret, "⟦github_pat_11ABCDEFG0abcdefghijkl_abcdefghij⟧"},
	{redact.Secret, "⟦glpat-abcDEF1234567890xyzq⟧ ⟦xoxb-123456789012-abcdefABCDEF⟧"},
	{redact.Secret, "//registry/:_authToken=⟦npm_abcdefghijklmnopqrstuvwxyz0123456789⟧"},
	{redact.Secret, "⟦SG.abcdefghij1234567890.ABCDEFGHIJ1234567890abcdefghij⟧ ⟦ya29.a0AfH6SMBabcdefghij1234567890⟧"},
	{redact.Secret, "⟦eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U⟧."},
	{redact.Secret, "⟦-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----⟧ x"},
	{redact.Secret, "⟦-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk⟧"},
	{redact.Secret, "Authorization: Bearer ⟦abc123def456ghi789jkl⟧"},
	{redact.Secret, "curl -H 'authorization: bearer ⟦abc12345⟧'"},
	{redact.Secret, "authorization: BASIC ⟦dXNlcjpwYXNzd29yZA==⟧"},
	{redact.Secret, "password=⟦hunter2⟧&user=bob"},
	{redact.Secret, "password: ⟦hunter2⟧, PASSWORD2 = '⟦correct horse⟧'"},
	{redact.Secret, `{"password": "⟦swordfish⟧", "user": "bob"}`},
	{redact.Secret, `"{\"password\": \"⟦swordfish1⟧\"}"`},
	{redact.Secret, "my password is ⟦Tr0ub4dor&3⟧."},
	{redact.Secret, "minha senha é ⟦s3nh4forte⟧"},
	{redact.Secret, "DB_PASSWORD=⟦swordfish⟧"},
	{redact.Secret, "mysql --password ⟦hunter2⟧ -u root"},
	{redact.Secret, "export TOKEN=⟦abcd1234efgh⟧"},
	{redact.Secret, "api key: ⟦abcd1234efgh5678⟧"},
	{redact.Secret, "aws_secret_access_key = ⟦wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY⟧"},
	{redact.Secret, "postgres://bob:⟦s3cret⟧@db.example.com/x"},
	{redact.Secret, "the key 9f86 is short, the key ⟦9f86d081884c7d659a2feaa0c55ad015⟧ is not"},
	{redact.Secret, "password=⟦" + strings.Repeat("x1", 2000) + "⟧ end"},
	{redact.Secret, "password=\"⟦" + strings.Repeat("x 1", 2000) + "⟧\" end"},
}

func TestMaskText_EachKind(t *testing.T) {
	r := redactor(t, redact.Config{})
	for _, s := range samples {
		t.Run(s.kind+"/"+s.text[:min(len(s.text), 40)], func(t *testing.T) {
			text, want := s.plain()
			if got := r.RedactText(text); got != want {
				t.Errorf("%q: got %q, want %q", text, got, want)
			}
		})
	}
}

// Values are found inside JSON, quotes, brackets and sentences.
func TestMaskText_EveryPosition(t *testing.T) {
	r := redactor(t, redact.Config{})
	for _, s := range samples {
		text, want := s.plain()
		if strings.ContainsAny(text, "\"'") || strings.HasSuffix(want, "END]") || strings.Contains(text, "BEGIN OPENSSH") {
			continue
		}
		for _, place := range []string{"(%)", "\n%\n", "see: %;", "\"%\"", "> % <", "前 % 后"} {
			before, after, _ := strings.Cut(place, "%")
			if got := r.RedactText(before + text + after); got != before+want+after {
				t.Errorf("%q: got %q, want %q", before+text+after, got, before+want+after)
			}
		}
	}
}

// A single kind is found without the others.
func TestNew_SelectsKinds(t *testing.T) {
	for _, s := range samples {
		text, want := s.plain()
		if got := redactor(t, redact.Config{Kinds: []string{s.kind}}).RedactText(text); got != want {
			t.Errorf("only %s: %q: got %q, want %q", s.kind, text, got, want)
		}
		if got := redactor(t, redact.Config{Kinds: []string{}}).RedactText(text); got != text {
			t.Errorf("no kind: got %q, want %q", got, text)
		}
	}
}

// alike contains text that is similar to the kinds but not masked.
var alike = []string{
	"lodash@4.17.21", "actions/checkout@v4.1", "user@localhost", "@decorator.foo", "git@github.com:org/repo.git", "image@sha256:abcdef", "info@example.",
	"a@b@c", "me @ example.com", "@",

	"released 2024-01-15 10:30:00", "on 15.01.2024 we", "between 2019-2020 and 2021/2022", "20240115123000", "call me on 2024-01-15",
	"order 1234567890123 shipped", "ticket 555-1234", "line 1234567", "population 12 345 678", "costs 1,234,567.89", "$1234567890", "range 100-2000000",
	"issue #12345678", "ABC-1234567", "chr1:1234567-2345678", "lat -23.550520, lon -46.633308", "0 1 1 2 3 5 8 13 21 34 55 89", "100 200 300", "1-2-3-4-5-6-7-8",
	"11 12 13 14 15 16 17 18", "call the function with 1000000 items", "SSN 123-45-6789", "order number 12345678901", "MAC: 01-23-45-67-89-AB", "0034567890124", "001332-1234567", "id=12345678", "ISBN 978-3-16-148410-0", "10,000,000 rows",

	"cpf 111.444.777-36", "11144477736", "000.000.000-00", "11.222.333/0001-82", "00.000.000/0000-00", "12.ABC.345/01DE-36", "12ABC34501DE35", "CNPJ: A12ABC34501DE35",
	"NIF 123456788", "NIF 000000000", "the order 123456789", "DNI 12345678A", "part number 12345678Z", "order 536-90-4399", "pedido X1234567L", "112345678Z", "12345678ZA", "W1234567L", "NIE X1234567A", "AX1234567L", "commit 12345678c0",
	"SSN 000-12-3456", "SSN 666-12-3456", "SSN 900-12-3456", "SSN 123-00-4567", "SSN 123-45-0000", "536-90.4399", "536904399", "536-90-43990", "x536-90-4399", "1.536-90-4399", "536-90-4399-1",

	"4111 1111 1111 1112", "at 1700000000000 ms", "0.4111111111111111", "id=4111111111111111abc", "x4111111111111111", "pi is 3.14159265358979",
	"uuid 550e8400-e29b-41d4-a716-446655440000", "ISBN 9783161484100", "0000 0000 0000 0000", "1748503543012",

	"GB82 WEST 1234 5698 7654 33", "DE893704004405320130", "XX82WEST12345698765432", "AD12000A2030200359100100",

	"v1.2.3.4", "version 10.0.19041.1", "1.2.3.4-rc1", "see section 4.3.2.1", "1.3.6.1.4.1", "256.300.1.1", "192.168.1", "12:34:56.789", "aa:bb:cc:dd:ee:ff",
	"std::vector<int>::iterator", "dead::beef", "a[1::2]", "foo::bar", "port 8080:80", "ratio 1:2:3:4", "::", "2001::db8::1", "a :: b",

	"the token is expired", "password is required", "password: string", "password = os.environ['X']", "password = get_password()", "token: str = None",
	"max_tokens: 8000", "api_key=${API_KEY}", "api_key: <your key>", "password: ********", "password=xxxx", "password: please reset it", "token=abc", "key: value",
	"sk-learn-compatible-estimators", "npm_config_registry_something", "Bearer of bad news", "Bearer Authentication-Scheme", "basic python3 lessons", "basic understanding of", "the key is under the mat",
	"commit 3f2a9c1d8e7b6a5f4c3d2e1f0a9b8c7d6e5f4a3b broke it", "AKIAIOSFODNN7EXAMPLES", "-----BEGIN CERTIFICATE-----", "http://localhost:8080/path", "https://example.com/a:b@c",
	"settings.password = settings.db.password", "--password --user bob",

	"[EMAIL_1] is a placeholder", "[EMAIL]", "",
}

func TestMaskText_SimilarTextStays(t *testing.T) {
	r := redactor(t, redact.Config{})
	for _, text := range alike {
		if got := r.RedactText(text); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
}

// Of overlapping values the longer one is kept, and the rest is scanned again.
func TestMaskText_Overlaps(t *testing.T) {
	r := redactor(t, redact.Config{})
	for _, tc := range []struct{ name, text, want string }{
		{"card in an address", "4111111111111111@example.com", "[EMAIL]"},
		{"address in a password", "password=bob1@example.com!", "password=[SECRET]"},
		{"address of a host in an address", "bob@10.0.0.7", "bob@[IP]"},
		{"password of a URL, not an address", "ftp://ann:bob@example.com/x", "ftp://ann:[SECRET]@example.com/x"},
		{"adjacent", "bob@example.com,ann@example.com;4111111111111111/10.0.0.7", "[EMAIL],[EMAIL];[CARD]/[IP]"},
		{"token in an assignment", "token=ghp_abcdefghijklmnopqrstuvwxyz0123456789", "token=[SECRET]"},
		{"address of a network that could be a phone", "call 192.168.10.10", "call [IP]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := r.RedactText(tc.text); got != tc.want {
				t.Errorf("%q: got %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}

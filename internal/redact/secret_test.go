package redact

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Texts of one line with the secret between ⟦ and ⟧; lines without one are not changed.
const someUUID = "12345678-1234-1234-1234-1234567890ab"

var secretLines = []struct{ name, text string }{
	// Templates are not secrets, unless other text is part of the value.
	{"dollars in quotes", `{"password":"⟦Pa$$w0rd9x⟧"}`},
	{"brackets in quotes", `password = "⟦My<Secret>99⟧"`},
	{"braces in quotes", `password: '⟦a{b}c{d}9⟧'`},
	{"dollar before the value", `password=⟦$ecret123⟧`},
	{"a hash", `password: "⟦$2b$12$abcdefghijklmnopqrstuv⟧"`},
	{"part of it is a template", `password: "⟦s3cr3t-${SUFFIX}⟧"`},
	{"brackets around marks", `password: "⟦<Xk9!z>⟧"`},
	{"figure in braces", `password: "⟦{abc12}⟧"`},
	{"brackets in front", `password: "⟦[abc]123x⟧"`},
	{"variable in braces", `password: "${DB_PASSWORD}"`},
	{"variable with a default", `password: "${DB_PASSWORD:-none}"`},
	{"variable", `password="$DB_PASSWORD"`},
	{"variable of a program", `password = $password`},
	{"variable without quotes", `PASSWORD=$DB_PASSWORD_2`},
	{"member of an object", `$password = $this->password`},
	{"double braces", `password: "{{ db_password }}"`},
	{"double braces and a path", `password: "{{ .Values.db.password }}"`},
	{"one brace", `password="{password}"`},
	{"for people", `password: "<your password>"`},
	{"two of them", `password: "${USER}:${PASSWORD}"`},
	{"of a shell", `PASSWORD="$(openssl rand -hex 12)"`},
	{"of a format", `password="%(password)s"`},
	{"of a page", `password="<%= password %>"`},
	{"left out", `password: "[REDACTED]"`},
	{"a pattern", `password: "^[A-Z]{2,}[0-9]$"`},

	// Quotes.
	{"escaped quote", `{"password":"⟦abc\"def123secret⟧"}`},
	{"escaped quote at the start", `{"password":"⟦\"abc9⟧", "user":"bob"}`},
	{"escaped backslash at the end", `{"password":"⟦abc9\\⟧", "user":"bob"}`},
	{"escaped line", `{"password":"⟦abc\ndef9⟧", "user":"bob"}`},
	{"JSON in JSON", `"{\"password\":\"⟦abc9⟧\",\"user\":\"bob\"}"`},
	{"escaped in JSON in JSON", `"{\"password\":\"⟦abc\\\"def9⟧\",\"user\":\"bob\"}"`},
	{"another quote inside", `password = "⟦it's 9⟧", user = 'bob'`},
	{"no closing quote", "password = \"⟦abc 9⟧"},

	// Ends of values.
	{"commas and semicolons inside", `DB_PASS=⟦s3cr3t,with;comma9⟧`},
	{"ampersand inside", `DB_PASSWORD=⟦ab9&cd⟧`},
	{"next item of a list", `connect(password=⟦hunter2⟧,user=bob)`},
	{"next parameter of a query", `password=⟦hunter2⟧&user=bob`},
	{"next setting of a connection", `Password=⟦hunter2⟧;User Id=bob;`},
	{"next member of an object", `{password:⟦hunter2⟧,user:bob}`},
	{"comma of a sentence", `password: ⟦hunter2⟧, and so on`},
	{"semicolon of a program", `password=⟦hunter2⟧;`},
	{"of a program, spoken", `my password is ⟦hunter2⟧,ok`},
	{"token before a comma", `token=⟦abcd1234efgh⟧,next`},
	{"last @ of a URL", `postgres://u:⟦p@ss⟧@h/db`},
	{"@ after the host", `postgres://u:⟦pass⟧@h/db?mail=@x`},
	{"@ after a question mark", `postgres://u:⟦pass⟧@h?mail=@x`},
	{"no user", `redis://:⟦hunter2⟧@h`},
	{"port and path", `http://localhost:8080/a@b`},

	// Positions of values.
	{"element", `<password>⟦hunter2⟧</password>`},
	{"element of a namespace", `<ns:dbPassword>⟦hunter2⟧</ns:dbPassword>`},
	{"element of a token", `<apiKey>⟦abcd1234efgh⟧</apiKey>`},
	{"element with a sentence", `<password>Enter it here</password>`},
	{"element with a template", `<password>${db.password}</password>`},
	{"element that is not closed", `<password>hunter2`},
	{"element of another name", `<label>hunter2</label>`},
	{"a comparison", `if password>hunter2 </x`},
	{"is with a colon", `password is: ⟦hunter2⟧`},
	{"is with a colon, Portuguese", `a senha é: ⟦hunter2⟧`},
	{"is with a colon, a sentence", `the password is: required`},
	{"this is no verb", `the password this: hunter2`},
	{"login of curl", `curl -u bob:⟦hunter2⟧ http://x`},
	{"login of curl in quotes", `curl --user "bob:⟦hunter2⟧" http://x`},
	{"login of letters", `curl -s -u bob:⟦swordfish⟧ http://x`},
	{"login by an address", `curl -u bob@host:⟦hunter2⟧ http://x`},
	{"a group", `docker run -u 1000:1000 image`},
	{"named group", `docker run -u node:node image`},
	{"a branch", `git push -u origin main:main`},
	{"login of a variable", `curl -u $USER:$PASSWORD http://x`},
	{"login of fillers", `curl -u user:password http://x`},
	{"login without a password", `curl -u bob http://x`},
	{"a URL", `open -u http://example.com/a1`},
	{"bearer of letters", `Authorization: Bearer ⟦abcdefgh⟧`},
	{"bearer in code", `headers = {'Authorization': 'Bearer ⟦abcdefgh⟧'}`},
	{"bearer set in code", `h.Set("Authorization", "Bearer ⟦abcdefgh⟧")`},
	{"basic, short", `Authorization: Basic ⟦dXNlcjpwYXNz⟧`},
	{"bearer for people", `Authorization: Bearer ACCESS_TOKEN`},
	{"bearer template", `Authorization: Bearer <token>`},
	{"bearer, nothing", `Authorization: Bearer `},
	{"bearer, a word", `a Bearer understands it`},
	{"authorization itself", `Authorization: ⟦abcd1234efgh⟧`},
	{"authorization of a person", `authorization: required for level1`},
	{"cookie", `Cookie: ⟦session=abc123def456ghi789⟧`},
	{"cookies", `Cookie: ⟦theme=dark; session=abc⟧`},
	{"cookie in quotes", `curl -H 'Cookie: ⟦sid=abc123⟧' http://x`},
	{"cookie in JSON", `{"Cookie": "⟦sid=abc123⟧"}`},
	{"cookie that is set", `Set-Cookie: ⟦sid=abc123; Path=/; HttpOnly⟧`},
	{"cookie, explained", `Cookie: a small file, see k=v`},
	{"cookie template", `Cookie: session=${SESSION}`},
	{"cookie, empty", `Cookie: a=`},

	// Assignments of programs and of files.
	{"type before the value", `var xToken string = "⟦abcd1234efgh⟧"`},
	{"type after a colon", `let password: string = "⟦hunter2⟧";`},
	{"type and default", `password: str = None`},
	{"type and variable", `password: string = input`},
	{"make, if unset", `X_TOKEN ?= "⟦abcd1234efgh⟧"`},
	{"make, at once", `X_TOKEN ::= ⟦abcd1234efgh⟧`},
	{"make, of a shell", `X_TOKEN :::= "⟦abcd1234efgh⟧"`},
	{"added", `X_TOKEN += "⟦abcd1234efgh⟧"`},
	{"if null", `$xToken ??= "⟦abcd1234efgh⟧"`},
	{"if false", `token ||= "⟦abcd1234efgh⟧"`},
	{"of a namespace", `password::Hash1234 other`},
	{"argument after the name", `setProperty("x_token", "⟦abcd1234efgh⟧")`},
	{"argument after the name, apart", `setenv('DB_PASSWORD',  '⟦hunter2x⟧', 1)`},
	{"argument of a setter", `client.withPassword("⟦hunter2x⟧")`},
	{"names of fields", `fields: ["password", "username", "first_name"]`},
	{"name as an argument", `os.getenv("API_TOKEN")`},
	{"argument without quotes", `check(password, hunter2x)`},
	{"line of values", `xToken,⟦abcd1234efgh5678⟧,2024`},
	{"line of names", `id,token,created_at,col1`},
	{"attribute", `<entry key="ClearTextPassword" value="⟦hunter2⟧" />`},
	{"attribute of another name", `<entry key="Label" value="hunter2" />`},
	{"member after the name", `{"name": "x_token", "value": "⟦abcd1234efgh⟧"}`},
	{"plus and equals signs", `token=⟦ab+cd/12345678==⟧ next`},
	{"plus and equals signs, spoken", `the token ⟦aB3dE6gH9jK2mN5pQ8sT1vW4+x/y==⟧ works`},
	{"digits alone", `x_token = "⟦12345678901234567890⟧"`},

	// Tokens without a name.
	{"after a word", `pnpm_config_registry_v2_something1`},
	{"Slack webhook", `POST https://hooks.slack.com/services/⟦T00000000/B00000000/abcd1234efgh5678ijkl9012⟧.`},
	{"Slack webhook without a scheme", `hooks.slack.com/workflows/⟦T00000000/A00000000/123456789012345678/abcd1234efgh5678⟧`},
	{
		"Teams webhook", `"https://acme.webhook.office.com/webhookb2/⟦` + someUUID + `@` + someUUID + `/IncomingWebhook/abcd1234efgh5678abcd1234efgh5678/` + someUUID + `⟧"`,
	},
	{"documentation of webhooks", `see https://api.slack.com/messaging/webhooks/getting_started_with_them`},
	{"webhook placeholder", `https://hooks.slack.com/services/YOUR/WEBHOOK/URL_GOES_IN_HERE`},
	{"login of curl, far away", `curl -k -X POST -H 'Content-type: text/plain' -d 'some world of words' -u developer:⟦swordfish⟧ http://x`},
	{"login of curl, after an equals sign", `curl --user=bob:⟦hunter2⟧ http://x`},
	{"login of curl, quoted apart", `curl --user  kevin:'⟦hunter2⟧' http://x`},
	{"login of curl, both quoted", `curl --user "kevin":"⟦hunter2⟧" http://x`},
	{"login of curl, cut off", `curl --user  `},
	{"Docker configuration of Kubernetes", `.dockerconfigjson: ⟦eyJhdXRocyI6eyJyIjp7ImF1dGgiOiJkWE5sY2pwd1lYTnoifX19Cg==⟧`},

	// Names.
	{"of a service", `SMTP_PASS=⟦hunter2⟧`},
	{"of a service, old", `MYSQL_PWD=⟦hunter2⟧`},
	{"more than one", `passwords: ⟦hunter2⟧`},
	{"no letter", `密码：⟦12345678⟧`},
	{"a pass", `bypass=enabled`},
	{"a constant", `FILTER_PASS = 0x10`},
	{"token of a sentence", `token: "the 3rd of the line"`},
}

// Values in the line after the name.
func TestFindSecrets_NextLine(t *testing.T) {
	r := ofAllKinds(t)
	for text, want := range map[string]string{
		"x_token: |\n  abcd1234efgh\nnext: 1":                        "x_token: |\n  [SECRET]\nnext: 1",
		"x_token: >-\n  abcd1234efgh":                                "x_token: >-\n  [SECRET]",
		"data:\n  .dockercfg: |\n    eyJhdXRocyI6eyJyIjp7fX19Cg==\n": "data:\n  .dockercfg: |\n    [SECRET]\n",
		"- name: X_TOKEN\n  value: abcd1234efgh\n":                   "- name: X_TOKEN\n  value: [SECRET]\n",
		"<xToken>\n    abcd1234efgh\n</xToken>":                      "<xToken>\n    [SECRET]\n</xToken>",
		"password: |\n":                                              "password: |\n",
		"<password>\n":                                               "<password>\n",
		"token: > abcd1234efgh":                                      "token: > abcd1234efgh",
	} {
		if got := r.RedactText(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// Tokens with a known prefix are found directly after a letter.
func TestFindSecrets_GluedTokens(t *testing.T) {
	r := ofAllKinds(t)
	for _, prefix := range []string{"ghp_", "glpat-", "npm_", "xoxb-"} {
		text := "key" + prefix + strings.Repeat("aB3", 12)
		if got, want := r.RedactText(text), "key[SECRET]"; got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestFindSecrets_Lines(t *testing.T) {
	r := ofAllKinds(t)
	for _, tc := range secretLines {
		t.Run(tc.name, func(t *testing.T) {
			text := strings.NewReplacer("⟦", "", "⟧", "").Replace(tc.text)
			want := tc.text
			if before, rest, found := strings.Cut(tc.text, "⟦"); found {
				_, after, _ := strings.Cut(rest, "⟧")
				want = before + "[SECRET]" + after
			}
			if got := r.RedactText(text); got != want {
				t.Errorf("%s: got %s, want %s", text, got, want)
			}
		})
	}
}

// A password in JSON is masked at any level of nesting.
func TestFindSecrets_QuotedPasswords(t *testing.T) {
	r := ofAllKinds(t)
	rapid.Check(t, func(t *rapid.T) {
		password := "p" + rapid.StringMatching(`[a-zA-Z0-9"\\!#,;$]{4,24}`).Draw(t, "password") + "9"
		text := `{"user":"bob","password":` + escaped(password) + `,"port":1}`
		inside := escaped(password)
		for range rapid.IntRange(0, 2).Draw(t, "levels") {
			text, inside = escaped(text), escaped(inside)
			inside = inside[1 : len(inside)-1]
		}
		got := r.RedactText(text)
		bare := strings.TrimRight(strings.Trim(inside, `\"`), `\`)
		if strings.Contains(got, bare) || strings.Count(got, "[SECRET]") != 1 || !strings.Contains(got, "user") || !strings.Contains(got, "port") {
			t.Fatalf("%s: got %s", text, got)
		}
	})
}

// escaped quotes a text as JSON.
func escaped(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// A password after "=" includes punctuation, unless the next pair of a list follows.
func TestFindSecrets_Settings(t *testing.T) {
	r := ofAllKinds(t)
	rapid.Check(t, func(t *rapid.T) {
		password := "a" + some(t, "front", small+decimalDigits, 3) + "9" + rapid.StringMatching(`([,;&][a-z0-9!#%*+~^]{1,6}){0,4}`).Draw(t, "marks")
		name := rapid.SampledFrom([]string{"DB_PASS", "PASSWORD", "spring.datasource.password", "REDIS_PASSWORD"}).Draw(t, "name")
		if got, want := r.RedactText(name+"="+password), name+"=[SECRET]"; got != want {
			t.Fatalf("%s=%s: got %s, want %s", name, password, got, want)
		}
		if got, want := r.RedactText(name+"="+password+";next=1"), name+"=[SECRET];next=1"; got != want {
			t.Fatalf("%s=%s: got %s, want %s", name, password, got, want)
		}
	})
}

func TestStrengthOf(t *testing.T) {
	for _, tc := range []struct {
		names string
		want  nameStrength
	}{
		{"password PASSWORD db_password dbPassword DB-PASSWORD password2 user.password passwd pwd PWD pass SMTP_PASS MYSQL_PWD senha contraseña 密码", nameStrong},
		{"token access_token apiKey API_KEY x-api-key client_secret secrets credentials 密钥 Authorization proxy-authorization", nameWeak},
		{"cookie Cookie Set-Cookie", nameCookie},
		{"", nameNone},
		{"user key id bypass compass first_pass tokens max_tokens tokenizer password_policy passwordless keyboard authorizations needsauthorization cookies", nameNone},
	} {
		for name := range strings.SplitSeq(tc.names, " ") {
			if got := strengthOf(name); got != tc.want {
				t.Errorf("%q: got %d, want %d", name, got, tc.want)
			}
		}
	}
}

func TestIsTemplate(t *testing.T) {
	for v, want := range map[string]bool{
		"${VAR}": true, "{{var}}": true, "<placeholder>": true, "$VAR": true, "$var": true, "$VAR_1": true, "$env:NAME": true, "#{x.y}": true, "%{x}": true,
		"$(cat file)": true, "%(name)s": true, "{name}": true, "[HIDDEN]": true, "${A}${B}": true, "${A}/${B}": true, "<%= x %>": true, "^a.*$": true, "${A:-b}": true,
		"": false, "$": false, "$1": false, "$var1": false, "a$VAR": false, "$VAR!": false, "${VAR": false, "${}": false, "{}": false, "{{a}": false,
		"<a><b": false, "My<b>c": false, "<b>c": false, "{a!b}": false, "{a1}": false, "-${A}": false, "^$": false, "[a]b": false, "Pa$$w0rd": false,
	} {
		if got := isTemplate(v); got != want {
			t.Errorf("%q: got %v, want %v", v, got, want)
		}
	}
}

func TestCountBackslashes(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 0, `\`: 1, `\\a\\\`: 3, strings.Repeat(`\`, 99): maxEscapes} {
		if got := countBackslashes(text, len(text)); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

// A bounded number of dotted parts after a run belong to a token.
func TestTokenRun(t *testing.T) {
	for _, tc := range []struct {
		name, text  string
		jwt, dotted string // the ends, as the text up to them
	}{
		{"alone", "eyJ x", "", "eyJ"},
		{"one part", "eyJ.b c", "", "eyJ.b"},
		{"signed", "eyJ.b.c d", "eyJ.b.c", "eyJ.b.c"},
		{"not signed", "eyJ.b. d", "eyJ.b.", "eyJ.b"},
		{"encrypted", "eyJ..c.d.e", "", "eyJ"},
		{"encrypted, with a key", "eyJ.b.c.d.e f", "eyJ.b.c.d.e", "eyJ.b.c.d.e"},
		{"more than any has", "eyJ.b.c.d.e.f.g", "eyJ.b.c.d.e", "eyJ.b.c.d.e"},
		{"end of a sentence", "eyJ.", "", "eyJ"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := tokenRun{text: tc.text, end: len("eyJ")}
			for range 2 { // the second time from the cache
				if got := tc.text[:r.findJWTEnd()]; got != tc.jwt {
					t.Errorf("as a JWT: got %q, want %q", got, tc.jwt)
				}
				if got := tc.text[:r.findDottedEnd()]; got != tc.dotted {
					t.Errorf("with its parts: got %q, want %q", got, tc.dotted)
				}
			}
		})
	}
}

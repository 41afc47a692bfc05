package auth

import (
	"strings"
	"testing"
	"time"
)

// A key that signs for one issuer cannot sign for another one.
func TestVerify_RejectsTokensOfOtherIssuers(t *testing.T) {
	fx := newVerifierFixture(t)
	fx.checkForgeries(t, forgeries{
		"a static key for a provider":             {fx.ed.token(t, fx.idpClaims()), unknownKey},
		"a static key of its kid, for a provider": {fx.staticShared.token(t, fx.idpClaims()), badSignature},
		"our own key for a provider":              {fx.own.token(t, fx.idpClaims()), unknownKey},
		"our own key for another issuer":          {fx.own.token(t, fx.claims()), "names another issuer"},
		"one provider for another":                {fx.otherIDP.token(t, fx.idpClaims()), badSignature},
		"the other for the one":                   {fx.idp.token(t, fx.idpClaims().with("iss", quote(otherIDP))), badSignature},
		"a provider for us":                       {fx.idp.token(t, fx.idpClaims().with("iss", quote(routerIssuer))), badSignature},
		"a provider for another issuer":           {fx.idp.token(t, fx.idpClaims().with("iss", `"x"`)), badSignature},
		"a provider with a slash more":            {fx.idp.token(t, fx.idpClaims().with("iss", quote(idp+"/"))), badSignature},
		"a provider in capitals":                  {fx.idp.token(t, fx.idpClaims().with("iss", quote(strings.ToUpper(idp)))), badSignature},
		"a provider for our audience":             {fx.idp.token(t, fx.idpClaims().with("aud", quote(routerAudience))), otherAudience},
		"a static key for a provider's audience":  {fx.ed.token(t, fx.claims().with("aud", quote(idpAudience))), otherAudience},
		"our own key without a kid":               {fx.own.sign(t, fx.own.header().without("kid").text(), fx.claims().with("iss", quote(routerIssuer)).text()), unknownKey},
	})
}

func TestVerify_RejectsForgedClaims(t *testing.T) {
	fx := newVerifierFixture(t)
	with := func(name, value string) string { return fx.ed.token(t, fx.claims().with(name, value)) }
	without := func(name string) string { return fx.ed.token(t, fx.claims().without(name)) }
	plus := func(name, value string) string { return fx.ed.token(t, fx.claims().prepend(name, value)) }
	const noAud, noScope, noTenant = "has no aud that is one string", "has a scope that is not", "has a tenant that is not a string"
	list := forgeries{
		"a claim twice":                    {plus("sub", `"root"`), badClaims},
		"a claim twice, one escaped":       {plus(`\u0073ub`, `"root"`), badClaims},
		"iss twice, one escaped":           {plus(`\u0069ss`, `"x"`), badClaims},
		"a claim in capitals beside it":    {plus("SUB", `"root"`), otherCase},
		"a claim in capitals alone":        {fx.ed.token(t, fx.claims().without("exp").with("EXP", "9999999999")), otherCase},
		"a long s for an s":                {plus("\u017fub", `"root"`), otherCase},
		"Nbf":                              {with("Nbf", "0"), otherCase},
		"Scope":                            {with("Scope", `"admin"`), otherCase},
		"unknown claims of one name":       {fx.ed.token(t, fx.claims().prepend("x", "1").prepend("x", "1")), badClaims},
		"unknown claims of one name, case": {fx.ed.token(t, fx.claims().prepend("role", "1").prepend("Role", "1")), otherCase},
		"names twice inside another claim": {with("act", `{"sub":"a","sub":"b"}`), badClaims},
		"Tenant beside tenant":             {plus("Tenant", `"globex"`), otherCase},
		"TENANT alone":                     {fx.ed.token(t, fx.claims().without("tenant").with("TENANT", `"globex"`)), "spelled in another case"},
		"ORG of a provider":                {fx.idp.token(t, fx.idpClaims().without("org").with("ORG", `"globex"`)), "spelled in another case"},

		"two audiences":                              {with("aud", `["caprouter","other"]`), noAud},
		"ours twice":                                 {with("aud", `["caprouter","caprouter"]`), noAud},
		"an empty list of audiences":                 {with("aud", `[]`), noAud},
		"a list in a list":                           {with("aud", `[["caprouter"]]`), noAud},
		"an audience that is an object":              {with("aud", `{"caprouter":1}`), noAud},
		"an audience that is null":                   {with("aud", `null`), noAud},
		"a list of null":                             {with("aud", `[null]`), noAud},
		"an empty audience":                          {with("aud", `""`), noAud},
		"no audience":                                {without("aud"), noAud},
		"another audience":                           {with("aud", `"other"`), otherAudience},
		"another audience in a list":                 {with("aud", `["other"]`), otherAudience},
		"our audience in capitals":                   {with("aud", `"CAPROUTER"`), otherAudience},
		"our audience and a space":                   {with("aud", `"caprouter "`), otherAudience},
		"audiences in one string":                    {with("aud", `"caprouter other"`), otherAudience},
		"an audience that begins as ours":            {with("aud", `"caprouter.evil.example"`), otherAudience},
		"scopes with two spaces":                     {with("scope", `"a  b"`), noScope},
		"a space before the scopes":                  {with("scope", `" admin"`), noScope},
		"a space behind them":                        {with("scope", `"admin "`), noScope},
		"a tab between scopes":                       {with("scope", `"a\tadmin"`), noScope},
		"a quote in a scope":                         {with("scope", `"a\"b"`), noScope},
		"a backslash in a scope":                     {with("scope", `"a\\b"`), noScope},
		"a scope that is not ASCII":                  {with("scope", `"ädmin"`), noScope},
		"a no-break space between scopes":            {with("scope", `"a\u00a0admin"`), noScope},
		"scopes in a list":                           {with("scope", `["admin"]`), noScope},
		"scope null":                                 {with("scope", `null`), noScope},
		"a tenant that is a number":                  {with("tenant", `1`), noTenant},
		"a tenant that is null":                      {with("tenant", `null`), noTenant},
		"a tenant that is a list":                    {with("tenant", `["acme"]`), noTenant},
		"a tenant of 257 bytes":                      {with("tenant", quote(strings.Repeat("t", 257))), noTenant},
		"a tenant with a line break":                 {with("tenant", `"acme\n"`), noTenant},
		"a provider's tenant that is no text":        {fx.idp.token(t, fx.idpClaims().with("org", `true`)), noTenant},
		"a provider's token without its tenant":      {fx.idp.token(t, fx.idpClaims().without("org")), `names no tenant: its claim "org" is missing or empty`},
		"a provider's tenant that is empty":          {fx.idp.token(t, fx.idpClaims().with("org", `""`)), `names no tenant: its claim "org" is missing or empty`},
		"a provider's tenant under our name":         {fx.idp.token(t, fx.idpClaims().without("org").with("tenant", `"globex"`)), "names no tenant"},
		"a token of an unknown key without a tenant": {newTestKey(t, "shared", "EdDSA").token(t, fx.idpClaims().without("org")), "has a signature that does not hold"},
		"no jti":                 {without("jti"), "has no jti"},
		"an empty jti":           {with("jti", `""`), "has no jti"},
		"a jti that is a number": {with("jti", `1`), "has no jti"},
		"no iat":                 {without("iat"), "has no iat"},
		"no exp":                 {without("exp"), "has no exp"},
		"exp null":               {with("exp", `null`), "has no exp"},
		"for 25 hours":           {with("exp", unixSeconds(fx.now.Add(25*time.Hour))), "is good for longer than 24 hours"},
		"issued tomorrow": {fx.ed.token(t, fx.claims().with("iat", unixSeconds(fx.now.Add(24*time.Hour))).
			with("exp", unixSeconds(fx.now.Add(25*time.Hour)))), "was issued in the future"},
	}
	for _, name := range []string{"iss", "sub"} {
		for what, value := range map[string]string{
			"empty": `""`, "null": `null`, "a number": `1`, "a list": `["alice"]`, "an object": `{"sub":"alice"}`,
			"257 bytes": quote(strings.Repeat("a", 257)), "a NUL": `"alice\u0000"`, "a line break": `"alice\nroot"`,
			"an escape": `"\u001b[2Jalice"`, "a delete": `"alice\u007f"`, "a C1 control": `"alice\u0085"`,
		} {
			list[name+": "+what] = forgery{with(name, value), "has no " + name + " that is a string"}
		}
		list["no "+name] = forgery{without(name), "has no " + name}
	}
	fx.checkForgeries(t, list)
}

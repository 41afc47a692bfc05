package auth

import (
	"strings"
	"testing"
	"time"
)

// A key of one issuer verifies no token of another issuer.
func TestVerify_RejectsTokensOfOtherIssuers(t *testing.T) {
	fx := newVerifierFixture(t)
	fx.checkForgeries(t, forgeries{
		"static key, issuer is a provider":                              {fx.ed.token(t, fx.idpClaims()), unknownKey},
		"static key with the kid of a provider, issuer is the provider": {fx.staticShared.token(t, fx.idpClaims()), badSignature},
		"router key, issuer is a provider":                              {fx.own.token(t, fx.idpClaims()), unknownKey},
		"router key, another issuer":                                    {fx.own.token(t, fx.claims()), "has another iss than"},
		"key of another provider":                                       {fx.otherIDP.token(t, fx.idpClaims()), badSignature},
		"issuer is another provider":                                    {fx.idp.token(t, fx.idpClaims().with("iss", quote(otherIDP))), badSignature},
		"provider key, issuer is the router":                            {fx.idp.token(t, fx.idpClaims().with("iss", quote(routerIssuer))), badSignature},
		"provider key, another issuer":                                  {fx.idp.token(t, fx.idpClaims().with("iss", `"x"`)), badSignature},
		"provider with a trailing slash":                                {fx.idp.token(t, fx.idpClaims().with("iss", quote(idp+"/"))), badSignature},
		"provider in upper case":                                        {fx.idp.token(t, fx.idpClaims().with("iss", quote(strings.ToUpper(idp)))), badSignature},
		"provider key, audience of the router":                          {fx.idp.token(t, fx.idpClaims().with("aud", quote(routerAudience))), otherAudience},
		"static key, audience of a provider":                            {fx.ed.token(t, fx.claims().with("aud", quote(idpAudience))), otherAudience},
		"router key without a kid":                                      {fx.own.sign(t, fx.own.header().without("kid").text(), fx.claims().with("iss", quote(routerIssuer)).text()), unknownKey},
	})
}

func TestVerify_RejectsForgedClaims(t *testing.T) {
	fx := newVerifierFixture(t)
	with := func(name, value string) string { return fx.ed.token(t, fx.claims().with(name, value)) }
	without := func(name string) string { return fx.ed.token(t, fx.claims().without(name)) }
	prepend := func(name, value string) string { return fx.ed.token(t, fx.claims().prepend(name, value)) }
	const noAud, noScope, noTenant = "has no aud that is one string", "has a scope that is not", "has a tenant that is not a string"
	list := forgeries{
		"duplicate claim":                    {prepend("sub", `"root"`), badClaims},
		"duplicate claim, one escaped":       {prepend(`\u0073ub`, `"root"`), badClaims},
		"duplicate iss, one escaped":         {prepend(`\u0069ss`, `"x"`), badClaims},
		"sub and SUB":                        {prepend("SUB", `"root"`), otherCase},
		"EXP without exp":                    {fx.ed.token(t, fx.claims().without("exp").with("EXP", "9999999999")), otherCase},
		"long s instead of s":                {prepend("\u017fub", `"root"`), otherCase},
		"Nbf":                                {with("Nbf", "0"), otherCase},
		"Scope":                              {with("Scope", `"admin"`), otherCase},
		"duplicate unknown claim":            {fx.ed.token(t, fx.claims().prepend("x", "1").prepend("x", "1")), badClaims},
		"unknown claims that differ by case": {fx.ed.token(t, fx.claims().prepend("role", "1").prepend("Role", "1")), otherCase},
		"duplicate name in a nested object":  {with("act", `{"sub":"a","sub":"b"}`), badClaims},
		"tenant and Tenant":                  {prepend("Tenant", `"globex"`), otherCase},
		"TENANT without tenant":              {fx.ed.token(t, fx.claims().without("tenant").with("TENANT", `"globex"`)), "spelled in another case"},
		"ORG from a provider":                {fx.idp.token(t, fx.idpClaims().without("org").with("ORG", `"globex"`)), "spelled in another case"},

		"two audiences":                         {with("aud", `["caprouter","other"]`), noAud},
		"list with the audience twice":          {with("aud", `["caprouter","caprouter"]`), noAud},
		"empty list of audiences":               {with("aud", `[]`), noAud},
		"nested list of audiences":              {with("aud", `[["caprouter"]]`), noAud},
		"audience is an object":                 {with("aud", `{"caprouter":1}`), noAud},
		"audience is null":                      {with("aud", `null`), noAud},
		"list of audiences with null":           {with("aud", `[null]`), noAud},
		"empty audience":                        {with("aud", `""`), noAud},
		"no audience":                           {without("aud"), noAud},
		"another audience":                      {with("aud", `"other"`), otherAudience},
		"another audience in a list":            {with("aud", `["other"]`), otherAudience},
		"audience in upper case":                {with("aud", `"CAPROUTER"`), otherAudience},
		"audience with a trailing space":        {with("aud", `"caprouter "`), otherAudience},
		"two audiences in one string":           {with("aud", `"caprouter other"`), otherAudience},
		"audience with the expected prefix":     {with("aud", `"caprouter.evil.example"`), otherAudience},
		"two spaces in scope":                   {with("scope", `"a  b"`), noScope},
		"leading space in scope":                {with("scope", `" admin"`), noScope},
		"trailing space in scope":               {with("scope", `"admin "`), noScope},
		"tab in scope":                          {with("scope", `"a\tadmin"`), noScope},
		"quote in scope":                        {with("scope", `"a\"b"`), noScope},
		"backslash in scope":                    {with("scope", `"a\\b"`), noScope},
		"scope is not ASCII":                    {with("scope", `"ädmin"`), noScope},
		"no-break space in scope":               {with("scope", `"a\u00a0admin"`), noScope},
		"scope is a list":                       {with("scope", `["admin"]`), noScope},
		"scope is null":                         {with("scope", `null`), noScope},
		"tenant is a number":                    {with("tenant", `1`), noTenant},
		"tenant is null":                        {with("tenant", `null`), noTenant},
		"tenant is a list":                      {with("tenant", `["acme"]`), noTenant},
		"tenant of 257 bytes":                   {with("tenant", quote(strings.Repeat("t", 257))), noTenant},
		"tenant with a line break":              {with("tenant", `"acme\n"`), noTenant},
		"provider's tenant is a boolean":        {fx.idp.token(t, fx.idpClaims().with("org", `true`)), noTenant},
		"provider's token without a tenant":     {fx.idp.token(t, fx.idpClaims().without("org")), `has no tenant: its claim "org" is missing or empty`},
		"provider's tenant is empty":            {fx.idp.token(t, fx.idpClaims().with("org", `""`)), `has no tenant: its claim "org" is missing or empty`},
		"provider's tenant in the claim tenant": {fx.idp.token(t, fx.idpClaims().without("org").with("tenant", `"globex"`)), "has no tenant"},
		"unknown key, no tenant":                {newTestKey(t, "shared", "EdDSA").token(t, fx.idpClaims().without("org")), "has an invalid signature"},
		"no jti":                                {without("jti"), "has no jti"},
		"empty jti":                             {with("jti", `""`), "has no jti"},
		"jti is a number":                       {with("jti", `1`), "has no jti"},
		"no iat":                                {without("iat"), "has no iat"},
		"no exp":                                {without("exp"), "has no exp"},
		"exp is null":                           {with("exp", `null`), "has no exp"},
		"lifetime of 25 hours":                  {with("exp", unixSeconds(fx.now.Add(25*time.Hour))), "is valid for more than 24 hours"},
		"issued tomorrow": {fx.ed.token(t, fx.claims().with("iat", unixSeconds(fx.now.Add(24*time.Hour))).
			with("exp", unixSeconds(fx.now.Add(25*time.Hour)))), "was issued in the future"},
	}
	for _, name := range []string{"iss", "sub"} {
		for what, value := range map[string]string{
			"empty": `""`, "null": `null`, "number": `1`, "list": `["alice"]`, "object": `{"sub":"alice"}`,
			"257 bytes": quote(strings.Repeat("a", 257)), "NUL": `"alice\u0000"`, "line break": `"alice\nroot"`,
			"escape character": `"\u001b[2Jalice"`, "delete character": `"alice\u007f"`, "C1 control character": `"alice\u0085"`,
		} {
			list[name+": "+what] = forgery{with(name, value), "has no " + name + " that is a string"}
		}
		list["no "+name] = forgery{without(name), "has no " + name}
	}
	fx.checkForgeries(t, list)
}

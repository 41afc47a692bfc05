package auth

import (
	"bytes"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/base64"
	"math/big"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

// Reasons for the rejection of forged tokens.
const (
	notThreeParts = "is not three parts"
	notBase64     = "is not plain base64url"
	badHeader     = "has a header that is not one JSON object"
	badClaims     = "has claims that are not one JSON object"
	otherCase     = "differ only by case"
	otherAlg      = "has another algorithm in its header"
	badKID        = "has a kid that is not"
	unknownKey    = "is signed with a key that is not known here"
	badSignature  = "has an invalid signature"
	otherAudience = "is for another audience"
)

type forgery struct{ token, why string }

type forgeries map[string]forgery

func (fx *verifierFixture) checkForgeries(t *testing.T, list forgeries) {
	for name, f := range list {
		t.Run(name, func(t *testing.T) {
			fx.t = t
			for range 2 { // a rejected token is not cached
				fx.wantRejected(f.token, f.why)
			}
		})
	}
}

// Malformed variants of a valid token.
func TestVerify_RejectsMalformedTokens(t *testing.T) {
	fx := newVerifierFixture(t)
	good := fx.ed.token(t, fx.claims())
	fx.mustVerify(good) // so that only the changes below are the reason for a rejection
	p := strings.Split(good, ".")
	signed := func(header, claims string) string { return fx.ed.signSegments(t, header+"."+claims) }
	fx.checkForgeries(t, forgeries{
		"empty":                       {"", notThreeParts},
		"one word":                    {"Bearer", notThreeParts},
		"with the scheme":             {"Bearer " + good, notBase64},
		"one dot":                     {".", notThreeParts},
		"two dots":                    {"..", badHeader},
		"trailing dot":                {good + ".", notThreeParts},
		"leading dot":                 {"." + good, notThreeParts},
		"two parts":                   {p[0] + "." + p[1], notThreeParts},
		"five parts, as in a JWE":     {good + "." + p[1] + "." + p[2], notThreeParts},
		"no header":                   {"." + p[1] + "." + p[2], badHeader},
		"no claims":                   {p[0] + ".." + p[2], badClaims},
		"no claims, signed":           {signed(p[0], ""), badClaims},
		"no signature":                {p[0] + "." + p[1] + ".", badSignature},
		"trailing space":              {good + " ", notBase64},
		"trailing line break":         {good + "\n", notBase64},
		"line break in the claims":    {signed(p[0], p[1][:8]+"\r\n"+p[1][8:]), notBase64},
		"padded header":               {signed(p[0]+"==", p[1]), notBase64},
		"padded signature":            {good + "==", notBase64},
		"base64 instead of base64url": {signed(base64.RawStdEncoding.EncodeToString([]byte(fx.ed.header().with("x", `"ÿ>?~~~>>>???"`).text())), p[1]), notBase64},
		"non-zero trailing bits of the signature": {good[:len(good)-1] + string(rune(good[len(good)-1]+1)), notBase64},
		"non-zero trailing bits of the claims":    {signWithTrailingBits(fx, t), notBase64},
		"NUL in the claims":                       {p[0] + "." + p[1][:4] + "\x00" + p[1][4:] + "." + p[2], notBase64},
		"longer than 8 KiB":                       {fx.ed.token(t, fx.claims().with("x", quote(strings.Repeat("x", 8<<10)))), "is longer than 8192 bytes"},
		"JSON serialization":                      {`{"protected":"` + p[0] + `","payload":"` + p[1] + `","signature":"` + p[2] + `"}`, notThreeParts},
		"header is a list":                        {fx.ed.sign(t, `[]`, fx.claims().text()), badHeader},
		"header is null":                          {fx.ed.sign(t, `null`, fx.claims().text()), badHeader},
		"text after the header":                   {fx.ed.sign(t, fx.ed.header().text()+`{}`, fx.claims().text()), badHeader},
		"claims are a list":                       {fx.ed.sign(t, fx.ed.header().text(), `[`+fx.claims().text()+`]`), badClaims},
		"claims are null":                         {fx.ed.sign(t, fx.ed.header().text(), `null`), badClaims},
		"claims are a string":                     {fx.ed.sign(t, fx.ed.header().text(), quote("alice")), badClaims},
		"text after the claims":                   {fx.ed.sign(t, fx.ed.header().text(), fx.claims().text()+`{"sub":"root"}`), badClaims},
		"NUL after the claims":                    {fx.ed.sign(t, fx.ed.header().text(), fx.claims().text()+"\x00"), badClaims},
		"byte order mark":                         {fx.ed.sign(t, fx.ed.header().text(), "\ufeff"+fx.claims().text()), badClaims},
		"trailing comma":                          {fx.ed.sign(t, fx.ed.header().text(), `{"x":1,}`), badClaims},
		"single quotes":                           {fx.ed.sign(t, fx.ed.header().text(), strings.ReplaceAll(fx.claims().text(), `"`, `'`)), badClaims},
		"claims are not UTF-8":                    {fx.ed.token(t, fx.claims().with("sub", "\"\xff\"")), badClaims},
		"unpaired surrogate":                      {fx.ed.token(t, fx.claims().with("sub", `"\ud800"`)), badClaims},
		"nested token":                            {fx.ed.sign(t, fx.ed.header().text(), good), badClaims},
		"nested too deeply":                       {fx.ed.token(t, fx.claims().with("x", strings.Repeat("[", 300)+strings.Repeat("]", 300))), badClaims},
	})
}

// signWithTrailingBits returns a signed token whose claims end with base64url bits that
// encode no byte and are not zero.
func signWithTrailingBits(fx *verifierFixture, t *testing.T) string {
	claims := fx.claims().text()
	for len(claims)%3 == 0 {
		claims += " "
	}
	part := encodeSegment(claims)
	return fx.ed.signSegments(t, encodeSegment(fx.ed.header().text())+"."+part[:len(part)-1]+string(rune(part[len(part)-1]+1)))
}

func TestVerify_RejectsForgedHeaders(t *testing.T) {
	fx := newVerifierFixture(t)
	fx.mustVerify(fx.ed.token(t, fx.claims()))
	header := func(m jsonMembers) string { return fx.ed.sign(t, m.text(), fx.claims().text()) }
	h := fx.ed.header()
	unsigned := func(alg string) string {
		return encodeSegment(h.with("alg", quote(alg)).text()) + "." + encodeSegment(fx.claims().text()) + "."
	}
	list := forgeries{
		"alg none, signed":             {header(h.with("alg", `"none"`)), otherAlg},
		"no alg":                       {header(h.without("alg")), otherAlg},
		"alg is a list":                {header(h.with("alg", `["EdDSA"]`)), otherAlg},
		"alg is null":                  {header(h.with("alg", `null`)), otherAlg},
		"alg of a key of another type": {header(h.with("alg", `"ES256"`)), unknownKey},
		"alg in another case":          {header(h.with("alg", `"eddsa"`)), otherAlg},
		"alg Ed25519":                  {header(h.with("alg", `"Ed25519"`)), otherAlg},
		"alg HS512":                    {header(h.with("alg", `"HS512"`)), otherAlg},
		"alg PS256":                    {header(h.with("alg", `"PS256"`)), otherAlg},
		"number out of range":          {header(h.with("x", "1e400")), "has a header that cannot be decoded"},
		"alg twice":                    {header(h.prepend("alg", `"none"`)), badHeader},
		"alg twice, one escaped":       {header(h.prepend(`\u0061lg`, `"none"`)), badHeader},
		"ALG beside alg":               {header(h.prepend("ALG", `"none"`)), otherCase},
		"Alg alone":                    {header(h.without("alg").with("Alg", `"EdDSA"`)), otherCase},
		"Kid alone":                    {header(h.without("kid").with("Kid", `"ed"`)), otherCase},
		"Kelvin sign instead of k":     {header(h.prepend("\u212aid", `"x"`)), otherCase},
		"no typ":                       {header(h.without("typ")), "has another typ"},
		"typ jwt":                      {header(h.with("typ", `"jwt"`)), "has another typ"},
		"typ AT+JWT":                   {header(h.with("typ", `"AT+JWT"`)), "has another typ"},
		"typ application/at+jwt":       {header(h.with("typ", `"application/at+jwt"`)), "has another typ"},
		"typ of a task token":          {header(h.with("typ", `"caprouter-task+jwt"`)), "has another typ"},
		"typ of an ID token":           {header(h.with("typ", `"id+jwt"`)), "has another typ"},
		"typ is a number":              {header(h.with("typ", `1`)), "has a typ that is not a string"},
		"Crit":                         {header(h.with("Crit", `[]`)), otherCase},
		"unknown kid":                  {header(h.with("kid", `"unknown"`)), unknownKey},
		"kid in another case":          {header(h.with("kid", `"ED"`)), unknownKey},
		"kid with a space":             {header(h.with("kid", `"ed "`)), unknownKey},
		"kid of another key":           {header(h.with("kid", `"ed2"`)), badSignature},
		"kid is a path":                {header(h.with("kid", `"../../../../dev/null"`)), unknownKey},
		"kid is SQL":                   {header(h.with("kid", `"x' UNION SELECT 'secret' --"`)), unknownKey},
		"kid is a command":             {header(h.with("kid", `"ed; cat /etc/passwd"`)), unknownKey},
		"kid is a URL":                 {header(h.with("kid", `"https://evil.example/key.pem"`)), unknownKey},
		"empty kid":                    {header(h.with("kid", `""`)), badKID},
		"kid is null":                  {header(h.with("kid", `null`)), badKID},
		"kid is a list":                {header(h.with("kid", `["ed"]`)), badKID},
		"kid is a number":              {header(h.with("kid", `0`)), badKID},
		"kid is an object":             {header(h.with("kid", `{"ed":1}`)), badKID},
		"kid with a NUL":               {header(h.with("kid", `"ed\u0000"`)), badKID},
		"kid with a line break":        {header(h.with("kid", `"ed\n"`)), badKID},
		"kid is not ASCII":             {header(h.with("kid", `"éd"`)), badKID},
		"kid of 257 bytes":             {header(h.with("kid", quote(strings.Repeat("k", 257)))), badKID},
		"kid twice":                    {header(h.prepend("kid", `"ed2"`)), badHeader},
		"no kid, several keys":         {header(h.without("kid")), unknownKey},
	}
	for _, alg := range []string{"none", "None", "NONE", "nOnE", "", " none", "none\u0000", "HS256 "} {
		list["unsigned, alg "+alg] = forgery{unsigned(strings.ReplaceAll(alg, "\x00", `\u0000`)), otherAlg}
	}
	for _, alg := range []string{"EdDSA", "ES256", "RS256", "HS256"} {
		token := unsigned(alg)
		why := badSignature
		if alg != "EdDSA" {
			why = unknownKey
		}
		list["unsigned, alg "+alg] = forgery{token, why}
	}
	for _, name := range []string{"crit", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "b64", "zip", "cty"} {
		for _, value := range []string{`"x"`, `null`, `[]`, `true`, `""`} {
			list[name+" "+value] = forgery{header(h.with(name, value)), "has " + name + " in its header"}
		}
	}
	public := base64.RawURLEncoding.EncodeToString(fx.ed.public.(ed25519.PublicKey))
	list["embedded key"] = forgery{header(h.with("jwk", `{"kty":"OKP","crv":"Ed25519","x":"`+public+`"}`)), "has jwk in its header"}
	fx.checkForgeries(t, list)
}

// An attacker uses a public key as the secret of an HMAC.
func TestVerify_RejectsAlgorithmConfusion(t *testing.T) {
	fx := newVerifierFixture(t)
	list := forgeries{}
	for _, k := range []testKey{fx.ed, fx.es, fx.rs, fx.own, fx.idp} {
		claims, why := fx.claims(), unknownKey
		switch k.kid {
		case fx.own.kid:
			claims, why = claims.with("iss", quote(routerIssuer)), otherAlg
		case fx.idp.kid:
			claims, why = fx.idpClaims(), otherAlg
		}
		der := k.der(t)
		for name, secret := range map[string][]byte{
			"PEM":                          k.pem(t),
			"PEM without its last newline": bytes.TrimSpace(k.pem(t)),
			"DER":                          der,
			"raw key":                      der[len(der)-32:],
			"base64 of DER":                []byte(base64.StdEncoding.EncodeToString(der)),
			"empty":                        {},
		} {
			forger := testKey{k.kid, jwt.SigningMethodHS256, secret, nil}
			list[k.kid+": "+name] = forgery{forger.token(t, claims), why}
			sameHeader := k.sign(t, forger.header().with("alg", quote(k.method.Alg())).text(), claims.text())
			fx.mustVerify(sameHeader) // so that only the algorithm makes the other tokens invalid
			forger.method = jwt.SigningMethodHS512
			list[k.kid+": "+name+", HS512"] = forgery{forger.token(t, claims), otherAlg}
		}
	}
	fx.checkForgeries(t, list)
}

func TestVerify_RejectsForgedSignatures(t *testing.T) {
	fx := newVerifierFixture(t)
	withSignature := func(k testKey, change func(signature []byte) []byte) string {
		token := k.token(t, fx.claims())
		i := strings.LastIndex(token, ".") + 1
		signature, err := base64.RawURLEncoding.DecodeString(token[i:])
		if err != nil {
			t.Fatal(err)
		}
		return token[:i] + base64.RawURLEncoding.EncodeToString(change(signature))
	}
	zeros := func(s []byte) []byte { return make([]byte, len(s)) }
	half := func(s []byte) []byte { return s[:len(s)/2] }
	longer := func(s []byte) []byte { return append(s, 0) }
	zeroBefore := func(s []byte) []byte { return append([]byte{0}, s...) }
	none := func([]byte) []byte { return nil }
	list := forgeries{}
	for _, k := range []testKey{fx.ed, fx.es, fx.rs, fx.hs} {
		for name, change := range map[string]func([]byte) []byte{
			"zeros": zeros, "first half": half, "additional byte": longer, "leading zero": zeroBefore, "none": none,
		} {
			list[k.kid+": "+name] = forgery{withSignature(k, change), badSignature}
		}
	}
	add := func(name, token, why string) { list[name] = forgery{token, why} }
	n := elliptic.P256().Params().N
	joinRS := func(r, s *big.Int) []byte {
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	}
	splitRS := func(b []byte) (r, s *big.Int) {
		return new(big.Int).SetBytes(b[:32]), new(big.Int).SetBytes(b[32:])
	}
	add("ES256 in DER", withSignature(fx.es, func(b []byte) []byte {
		r, s := splitRS(b)
		der, err := asn1.Marshal(struct{ R, S *big.Int }{r, s})
		if err != nil {
			t.Fatal(err)
		}
		return der
	}), badSignature)
	add("ES256 with r = 0", withSignature(fx.es, func(b []byte) []byte { _, s := splitRS(b); return joinRS(new(big.Int), s) }), badSignature)
	add("ES256 with s = 0", withSignature(fx.es, func(b []byte) []byte { r, _ := splitRS(b); return joinRS(r, new(big.Int)) }), badSignature)
	add("ES256 with r = s = n", withSignature(fx.es, func([]byte) []byte { return joinRS(n, n) }), badSignature)
	add("ES256 with r = s = 1", withSignature(fx.es, func([]byte) []byte { return joinRS(big.NewInt(1), big.NewInt(1)) }), badSignature)
	add("ES256 with r and s swapped", withSignature(fx.es, func(b []byte) []byte { r, s := splitRS(b); return joinRS(s, r) }), badSignature)
	add("EdDSA with s plus the group order", withSignature(fx.ed, addGroupOrder), badSignature)
	add("RS256 of a hash without PKCS #1 padding", withSignature(fx.rs, func([]byte) []byte {
		sum := sha256.Sum256([]byte("x"))
		return append(make([]byte, 224), sum[:]...)
	}), badSignature)
	pss := testKey{fx.rs.kid, jwt.SigningMethodPS256, fx.rs.private, fx.rs.public}
	add("PSS signature with alg RS256", pss.sign(t, fx.rs.header().text(), fx.claims().text()), badSignature)
	rs512 := testKey{fx.rs.kid, jwt.SigningMethodRS512, fx.rs.private, fx.rs.public}
	add("RS512 signature with alg RS256", rs512.sign(t, fx.rs.header().text(), fx.claims().text()), badSignature)
	alice := fx.ed.token(t, fx.claims())
	root := fx.ed.token(t, fx.claims().with("sub", `"root"`))
	add("claims of another token", strings.Split(alice, ".")[0]+"."+strings.Split(root, ".")[1]+"."+strings.Split(alice, ".")[2], badSignature)
	add("signature of another token", alice[:strings.LastIndex(alice, ".")]+root[strings.LastIndex(root, "."):], badSignature)
	fx.mustVerify(alice)
	add("kid of another key, after a valid token with this kid", fx.ed2.sign(t, fx.ed.header().text(), fx.claims().text()), badSignature)
	fx.checkForgeries(t, list)

	// A high s is valid, because JWS does not require a low one.
	fx.t = t
	fx.mustVerify(withSignature(fx.es, func(b []byte) []byte { r, s := splitRS(b); return joinRS(r, s.Sub(n, s)) }))
}

// addGroupOrder adds the group order to s, the second half of an Ed25519 signature. RFC 8032,
// section 5.1.7, requires a smaller s, but some verifiers accept this one.
func addGroupOrder(signature []byte) []byte {
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	le := bytes.Clone(signature[32:])
	reverse(le)
	sum := new(big.Int).Add(new(big.Int).SetBytes(le), order).FillBytes(make([]byte, 32))
	reverse(sum)
	return append(bytes.Clone(signature[:32]), sum...)
}

func reverse(b []byte) {
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
}

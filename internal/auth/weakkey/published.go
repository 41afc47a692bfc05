package weakkey

// publishedKeys returns public keys whose private half is published in documents,
// with their source, by the SHA-256 of their DER.
func publishedKeys() map[string]string {
	return map[string]string{
		"6fd13c2435a361e7c588cd17f55f5ad3df0177a66c1727a6a200845f4d7ab88c": "RFC 7515, appendix A.2",
		"2bd1bb0c44a897c30a7aa0991cde38d8062fe441de50da0f46825344f602e827": "RFC 7515, appendix A.3",
		"51b944cdfa544d4c3273aa6bf350625a7dd53bbb6a71723274f538b19a207760": "RFC 7517, appendix A.2",
		"ad32320cf6c596d884b05381ba573aba8ddd5749b4de8f4a23a79f9a89ddaeb2": "RFC 7517, appendix A.2",
		"06e3fd8fda29bb60ab59557de61edb0aecdb231134be30e75b455f8e1b792fa9": "RFC 8037, appendix A.1",
		"f56c8b01227f62ddbc16eb29a6ac0b310e276760a5e06302fa881a35146f6bc7": "jwt.io",
		"a40f0f2e2974dc76a82df6ffe08ed0d79955c79e7ad0c20d97ae8f9246ade1c1": "jwt.io",
	}
}

// publishedSecrets returns published secrets by their SHA-256: the bytes, and
// their base64url text.
func publishedSecrets() map[string]string {
	return map[string]string{
		"c8ecc9361a05e285f04c26f9572131a6deab07e9e2b865053c6f75a4d8bd2b32": "RFC 7515, appendix A.1",
		"8b1b17a9740c068accab5c3d0d652c8e3cc13206e70bb73b42ea41d4c2de3c12": "RFC 7515, appendix A.1",
		"73ec74458059c70cae3f0ade8663fe0da1dc4b114ed8cdac75364140b4458a4c": "RFC 7520, section 3.5",
		"0330b11998cbc9abd5a585e755cb5df2f73f1a5632fdcc2abb19e05e3eceddb9": "RFC 7520, section 3.5",
	}
}

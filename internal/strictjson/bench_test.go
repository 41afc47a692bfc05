package strictjson

import (
	"encoding/json"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

const benchBody = `{"content":{"prompt":"Please do a code review of this python module and tell me what it costs to run",` +
	`"inputs":{"repo":"https://git.example/team/app","rev":"main"}},"metadata":{"locale":"pt-BR"},"options":{"dry_run":true}}`

const benchForeign = `{"iss":"https://idp.example","sub":"u-123","aud":"caprouter","exp":1767366245,"iat":1767362645,` +
	`"jti":"b6f1","scope":"route:submit agent:*","tenant":"acme","custom":{"a":[1,2,3]}}`

func BenchmarkUnmarshal(b *testing.B) {
	b.SetBytes(int64(len(benchBody)))
	b.ReportAllocs()
	for b.Loop() {
		var r contract.Request
		if err := Unmarshal([]byte(benchBody), &r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnmarshalWithNull(b *testing.B) {
	body := []byte(benchBody[:len(benchBody)-1] + `,"agent_id":null}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		var r contract.Request
		if err := Unmarshal(body, &r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnmarshalAllowUnknown(b *testing.B) {
	b.SetBytes(int64(len(benchForeign)))
	b.ReportAllocs()
	for b.Loop() {
		var c claims
		if err := UnmarshalAllowUnknown([]byte(benchForeign), &c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStandardLibrary decodes the same body with encoding/json.
func BenchmarkStandardLibrary(b *testing.B) {
	b.SetBytes(int64(len(benchBody)))
	b.ReportAllocs()
	for b.Loop() {
		var r contract.Request
		if err := json.Unmarshal([]byte(benchBody), &r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMarshal(b *testing.B) {
	r := fullResponse()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Marshal(r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMarshalStandardLibrary(b *testing.B) {
	r := fullResponse()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := json.Marshal(r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	r := contract.Request{Content: contract.Content{Prompt: "x"}, Options: contract.Options{Mode: "sync"}}
	b.ReportAllocs()
	for b.Loop() {
		if d := Validate(&r); d != nil {
			b.Fatal(d)
		}
	}
}

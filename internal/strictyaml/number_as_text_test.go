package strictyaml

import (
	"strings"
	"testing"
)

type acceptance string

func TestNumberAsText_AcceptsNumbers(t *testing.T) {
	tests := []struct {
		file, want, wantErr string
	}{
		{file: "accept: auto\n", want: "auto"},
		{file: "accept: 0.8\n", want: "0.8"},
		{file: "accept: 1\n", want: "1"},
		{file: "accept: \"0.8\"\n", want: "0.8"},
		{file: "accept: 0x10\n", wantErr: "f.yaml:1:9: must be text"},
		{file: "accept: .inf\n", wantErr: "f.yaml:1:9: must be text"},
		{file: "accept: true\n", wantErr: "f.yaml:1:9: must be text"},
		{file: "accept: [0.8]\n", wantErr: "f.yaml:1:9:"},
		{file: "accept: ~\n", wantErr: "f.yaml:1:9: there is no value here"},
	}
	for _, tt := range tests {
		var got struct {
			Accept acceptance `yaml:"accept"`
		}
		err := Decode("f.yaml", []byte(tt.file), &got, NumberAsText[acceptance]())
		text := ""
		if err != nil {
			text = err.Error()
		}
		if string(got.Accept) != tt.want || (err != nil) != (tt.wantErr != "") || !strings.Contains(text, tt.wantErr) {
			t.Errorf("%q: got %q and error %q, want %q and %q", tt.file, got.Accept, text, tt.want, tt.wantErr)
		}
	}
}

// Only NumberAsText accepts numbers; a plain string does not.
func TestNumberAsText_OnlyForThisType(t *testing.T) {
	var got struct {
		Accept acceptance `yaml:"accept"`
		Name   string     `yaml:"name"`
	}
	err := Decode("f.yaml", []byte("accept: 0.8\nname: 0.8\n"), &got, NumberAsText[acceptance]())
	if err == nil || !strings.Contains(err.Error(), "f.yaml:2:7: must be text") || got.Accept != "0.8" {
		t.Errorf("got %+v and error %v, want the number rejected for name only", got, err)
	}
}

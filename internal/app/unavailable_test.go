package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

// The address of an agent and its reply are shown to operators only.
func TestServer_ShowsAddressAndReplyToOperatorsOnly(t *testing.T) {
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("ana@example.com may not use this"))
	}))
	t.Cleanup(broken.Close)
	m := newTokenIssuer()
	s := startGuarded(t, m, "clients:\n"+entry("quality_agent", "code_review", "python", broken.URL)+
		entry("second_agent", "code_review", "python", refusing))
	user := m.token("ana", "route:submit route:read agent:*", nil)
	got := s.do(call{method: "POST", path: "/api/v1/route", token: user, body: `{"content":{"prompt":"code review of python"}}`})
	var resp contract.Response
	if err := json.Unmarshal(got.body, &resp); err != nil || resp.Status != contract.StatusFailed || len(resp.Tasks) != 1 || len(resp.Tasks[0].FailedOver) != 1 {
		t.Fatalf("got %s, %v, want one failed task after a failover", got.body, err)
	}
	admin := m.token("root", "admin route:read", nil)
	for _, path := range []string{"/api/v1/requests/" + resp.RequestID, "/api/v1/decisions"} {
		seen := s.do(call{method: "GET", path: path, token: admin})
		for _, want := range []string{`"address":"` + broken.URL + `/"`, `"reply":"[EMAIL_1] may not use this"`} {
			if !strings.Contains(string(seen.body), want) {
				t.Errorf("%s: got %s, want %s for an operator", path, seen.body, want)
			}
		}
		got.body = append(got.body, s.do(call{method: "GET", path: path, token: user}).body...)
	}
	for _, secret := range []string{"127.0.0.1", "may not use this"} {
		if strings.Contains(string(got.body), secret) {
			t.Errorf("got %s, want no %q for the caller", got.body, secret)
		}
	}
	if log := s.log.String(); !strings.Contains(log, "[EMAIL_1] may not use this") || !strings.Contains(log, broken.URL) || strings.Contains(log, "ana@") {
		t.Errorf("got log %s, want address and masked reply", log)
	}
}

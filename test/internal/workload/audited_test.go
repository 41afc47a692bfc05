package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
)

func TestCheckAudit_ReportsViolations(t *testing.T) {
	const id = "01a205d3-a1cf-7d48-98b3-6148712168b0"
	born := time.UnixMilli(0x01a205d3a1cf)
	const noDecision, noOutcome, otherStatus = "a dispatched request without exactly one decision record", "a request without exactly one outcome record", "the audit log and the response differ in the status"
	for _, tt := range []struct {
		name       string
		rec        auditedRequest
		dispatched bool
		begin      time.Time
		want       map[string][]string
	}{
		{"complete", auditedRequest{decisions: []uint64{7}, outcomes: []uint64{8}}, true, time.Time{}, nil},
		{"not dispatched", auditedRequest{outcomes: []uint64{8}}, false, time.Time{}, nil},
		{"no decision", auditedRequest{outcomes: []uint64{8}}, true, time.Time{}, map[string][]string{noDecision: {id + ": decision records [], outcome records [8]"}}},
		{"two decisions", auditedRequest{decisions: []uint64{6, 7}, outcomes: []uint64{8}}, true, time.Time{}, map[string][]string{noDecision: {id + ": decision records [6 7], outcome records [8]"}}},
		{"no outcome", auditedRequest{decisions: []uint64{7}}, true, time.Time{}, map[string][]string{noOutcome: {id + ": decision records [7], outcome records []"}}},
		{"two outcomes", auditedRequest{decisions: []uint64{7}, outcomes: []uint64{8, 9}}, true, time.Time{}, map[string][]string{noOutcome: {id + ": decision records [7], outcome records [8 9]"}}},
		{"outcome before the decision", auditedRequest{decisions: []uint64{9}, outcomes: []uint64{8}}, true, time.Time{}, map[string][]string{noOutcome: {id + ": decision records [9], outcome records [8]"}}},
		{"another status", auditedRequest{decisions: []uint64{7}, outcomes: []uint64{8}, status: contract.StatusFailed}, true, time.Time{}, map[string][]string{otherStatus: {id + ": failed in the audit log, completed in the response"}}},
		{"trimmed", auditedRequest{}, true, born, nil},
		{"trimmed up to the outcome", auditedRequest{outcomes: []uint64{8}}, true, born, nil},
		{"too new to be trimmed", auditedRequest{outcomes: []uint64{8}}, true, born.Add(-time.Minute), map[string][]string{noDecision: {id + ": decision records [], outcome records [8]"}}},
		{"twice in a trimmed log", auditedRequest{outcomes: []uint64{8, 9}}, true, born, map[string][]string{noOutcome: {id + ": decision records [], outcome records [8 9]"}}},
	} {
		l := NewLedger()
		l.recordAccepted(id)
		l.see(responseWith(id))
		if tt.dispatched {
			l.recordExecution(execution{subtask: subtask{id, "i"}})
		}
		if tt.rec.status == "" {
			tt.rec.status = contract.StatusCompleted
		}
		found := Violations(l.CheckAudit(&AuditedRequests{byID: map[string]*auditedRequest{id: &tt.rec}, begin: tt.begin}))
		if tt.want == nil {
			tt.want = map[string][]string{}
		}
		if diff := cmp.Diff(tt.want, found); diff != "" {
			t.Errorf("%s: violations (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestCheckAudit_FindsUnknownRequests(t *testing.T) {
	found := Violations(NewLedger().CheckAudit(&AuditedRequests{byID: map[string]*auditedRequest{"r": {decisions: []uint64{1}}}}))
	if diff := cmp.Diff(map[string][]string{"a request without exactly one outcome record": {"r: decision records [1], outcome records []"}}, found); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

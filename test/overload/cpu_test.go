package main

import "testing"

func TestForeignShare(t *testing.T) {
	total, busy := parseMachineTimes([]byte("cpu  100 10 50 700 100 20 15 5 1 1\ncpu0 1 1 1 1\n"))
	if total != 1000 || busy != 200 {
		t.Errorf("got %d ticks, %d busy, want 1000, 200", total, busy)
	}
	if got := parseProcessTime([]byte("42 (a name) S 1 1 1 0 -1 4194560 1 0 0 0 70 30 0 0 20")); got != 100 {
		t.Errorf("got %d ticks of a process, want 100", got)
	}
	if got := parseProcessTime([]byte("42 (a")); got != 0 {
		t.Errorf("got %d ticks of half a line, want 0", got)
	}
	for _, tt := range []struct {
		now, since cpuTimes
		want       float64
	}{
		{cpuTimes{1000, 300, 100}, cpuTimes{0, 0, 0}, 0.2},
		{cpuTimes{1000, 300, 310}, cpuTimes{0, 0, 0}, 0},
		{cpuTimes{1000, 300, 100}, cpuTimes{500, 200, 100}, 0.2},
		{cpuTimes{}, cpuTimes{}, 0},
	} {
		if got := tt.now.foreignShare(tt.since); got != tt.want {
			t.Errorf("%+v since %+v: got %v, want %v", tt.now, tt.since, got, tt.want)
		}
	}
	if now := readCPUTimes(nil); now.total > 0 && now.own > now.busy {
		t.Errorf("got %+v, want fewer ticks of this process than of the machine", now)
	}
}

package costs

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func analyse(t *testing.T, text string) Report {
	t.Helper()
	table, err := Read(text)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return Analyse(table)
}

// Ten cents, ten times, is one unit: what binary fractions get wrong.
func TestTotalIsExact(t *testing.T) {
	r := analyse(t, "cost\n"+strings.Repeat("0.1\n", 10))
	if r.Total.Cmp(big.NewRat(1, 1)) != 0 {
		t.Errorf("total %s, want 1", r.Total.RatString())
	}
}

func TestServicesAndResources(t *testing.T) {
	r := analyse(t, "service,resource,cost\nA,a1,1\nB,b1,5\nA,a2,2\n,,4\nA,a1,1\n")
	show := func(list []Share) string {
		var out []string
		for _, s := range list {
			out = append(out, fmt.Sprintf("%s/%s=%s", s.Name, s.Of, s.Cost.RatString()))
		}
		return strings.Join(out, " ")
	}
	if got, want := show(r.Services), "B/=5 A/=4 (none)/=4"; got != want {
		t.Errorf("services %s, want %s", got, want)
	}
	if got, want := show(r.Resources), "b1/B=5 a1/A=2 a2/A=2"; got != want {
		t.Errorf("resources %s, want %s", got, want)
	}
}

func TestMonths(t *testing.T) {
	tests := []struct {
		name, text string
		months     []string // month days cost
		movers     []string // service before → then, per day
	}{
		{"one month", "date,service,cost\n2026-01-01,A,1\n2026-01-02,A,2\n", []string{"2026-01 2 3"}, nil},
		{
			"a month that is not over compares by day",
			"date,service,cost\n2026-01-01,A,4\n2026-01-02,A,4\n2026-01-02,B,2\n2026-02-01,A,6\n2026-02-01,B,1\n",
			[]string{"2026-01 2 10", "2026-02 1 7"},
			[]string{"A 4 → 6"},
		},
		{
			"a new service and one that is gone",
			"date,service,cost\n2026-01-01,A,3\n2026-02-01,B,5\n",
			[]string{"2026-01 1 3", "2026-02 1 5"},
			[]string{"B 0 → 5", "A 3 → 0"},
		},
		{
			"only the last two months move",
			"date,service,cost\n2025-12-01,C,9\n2026-01-01,A,3\n2026-02-01,A,3\n",
			[]string{"2025-12 1 9", "2026-01 1 3", "2026-02 1 3"},
			nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := analyse(t, tt.text)
			var months, movers []string
			for _, m := range r.Months {
				months = append(months, fmt.Sprintf("%s %d %s", m.First.Format("2006-01"), m.Days, m.Cost.RatString()))
			}
			for _, m := range r.Movers {
				movers = append(movers, fmt.Sprintf("%s %s → %s", m.Service, m.Before.RatString(), m.Then.RatString()))
			}
			if diff := cmp.Diff(tt.months, months); diff != "" {
				t.Errorf("months (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.movers, movers); diff != "" {
				t.Errorf("movers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUntagged(t *testing.T) {
	r := analyse(t, "resource,service,tags,cost\na,S,,1\nb,S,{},2\nc,S,env=prod,4\n,T,null,3\na,S,\"[ ]\",8\n")
	want := &Untagged{Cost: big.NewRat(14, 1), Rows: 4, Resources: []string{"a", "T", "b"}}
	if diff := cmp.Diff(want, r.Untagged, cmp.Comparer(func(a, b *big.Rat) bool { return a.Cmp(b) == 0 })); diff != "" {
		t.Errorf("untagged (-want +got):\n%s", diff)
	}
	if got := analyse(t, "cost\n1\n").Untagged; got != nil {
		t.Errorf("without a tags column: got %+v, want nil", got)
	}
}

// days writes one row a day for a service, from 2026-01-01.
func days(service string, amounts ...string) string {
	var b strings.Builder
	for i, a := range amounts {
		fmt.Fprintf(&b, "%s,%s,%s\n", time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly), service, a)
	}
	return b.String()
}

func TestSpikes(t *testing.T) {
	const header = "date,service,cost\n"
	tests := []struct {
		name, text string
		want       []string
	}{
		{"steady", days("A", "1", "1", "2", "1", "1", "2", "1", "1"), nil},
		{"one day", days("A", "1", "1", "1", "9", "1", "1", "1", "1"), []string{"2026-01-04 A 9 of 1"}},
		{"exactly three times is usual", days("A", "1", "1", "1", "3", "1", "1", "1"), nil},
		{"too few days to know", days("A", "1", "1", "1", "9", "1", "1"), nil},
		{"a trifle of the whole", days("A", "0.01", "0.01", "0.01", "0.09", "0.01", "0.01", "0.01") + days("B", "9"), nil},
		{"nothing on most days", days("A", "0", "0", "0", "5", "0", "0", "0"), []string{"2026-01-04 A 5 of 0"}},
		{"rows of one day add up", days("A", "2", "2", "2", "2", "2", "2", "2") + "2026-01-03,A,9\n", []string{"2026-01-03 A 11 of 2"}},
		{"the costliest first", days("A", "1", "1", "7", "9", "1", "1", "1", "1"), []string{"2026-01-04 A 9 of 1", "2026-01-03 A 7 of 1"}},
		{"an even number of days", days("A", "1", "2", "1", "2", "1", "2", "1", "8"), []string{"2026-01-08 A 8 of 3/2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, s := range analyse(t, header+tt.text).Spikes {
				got = append(got, fmt.Sprintf("%s %s %s of %s", s.Day.Format(time.DateOnly), s.Service, s.Cost.RatString(), s.Median.RatString()))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("spikes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIdle(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"low use", "resource,cost,avg_cpu_percent\nvm,5,1.5\nvm,5,2%\nbusy,9,40\n", []string{"vm 10 average use 1.8 %"}},
		{"five percent is use", "resource,cost,utilization\nvm,5,5\n", nil},
		{"billed for nothing", "resource,cost,quantity\nip,5,0\nip,5,0\ndb,9,1\n", []string{"ip 10 billed without any usage"}},
		{"by its name", "resource,cost\ndisk-unattached-3,5\nvm-old,7\ndisk,9\n", []string{"vm-old 7 its name says “old”", "disk-unattached-3 5 its name says “unattached”"}},
		{"use counts more than the name", "resource,cost,utilization\nvm-old,7,60\n", nil},
		{"free", "resource,cost,quantity\nip,0,0\ncredit,-4,0\n", nil},
		{"no resources", "service,cost,quantity\nip,5,0\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, i := range analyse(t, tt.text).Idle {
				got = append(got, fmt.Sprintf("%s %s %s", i.Resource, i.Cost.RatString(), i.Reason))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("idle (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"only costs", "cost\n1.5\n", `1.50 in 1 row.
By service:
  (none)  1.50  100.0 %
`},
		{
			"everything",
			"date,service,resource,tags,cost,currency\n2026-01-01,Compute,vm-old,,900,EUR\n2026-01-02,Compute,vm-1,env=prod,100,EUR\n2026-02-01,Compute,vm-1,env=prod,600,EUR\n2026-02-01,Storage,st,,0.005,EUR\n",
			`1,600.01 EUR in 4 rows, 2026-01-01 to 2026-02-01.
By service:
  Compute  1,600.00  100.0 %
  Storage      0.01    0.0 %
Top resources:
  vm-old  900.00   56.2 %  Compute
  vm-1    700.00   43.7 %  Compute
  st        0.01    0.0 %  Storage
Month over month: 2026-01 1,000.00 (2 days), 2026-02 600.01 (1 day); per day +20.0 %.
  most of it: Compute, from 500.00 to 600.00 a day (+20.0 %)
Untagged: 900.01 EUR (56.3 %) in 2 resources: vm-old, st.
Idle: vm-old cost 900.00 EUR; its name says “old”.
`,
		},
		{"a table by month", "month,service,cost (EUR)\n2026-01,A,10\n2026-02,A,9\n2026-02,B,3\n", `22.00 EUR in 3 rows, 2026-01-01 to 2026-02-01.
By service:
  A  19.00   86.4 %
  B   3.00   13.6 %
Month over month: 2026-01 10.00, 2026-02 12.00 (+20.0 %).
  most of it: B, from 0.00 to 3.00 (new)
`},
		{"a spike", "date,service,cost\n" + days("A", "1", "1", "1", "9", "1", "1", "1"), `15.00 in 7 rows, 2026-01-01 to 2026-01-07.
By service:
  A  15.00  100.0 %
Unusual: 2026-01-04, A cost 9.00, 9.0 times its median of 1.00.
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, analyse(t, tt.text).Summary()); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}

func TestListsAreCut(t *testing.T) {
	var b strings.Builder
	b.WriteString("service,resource,tags,cost\n")
	for i := range 60 {
		fmt.Fprintf(&b, "service %d,%s%d,,1\n", i, strings.Repeat("r", 100), i)
	}
	r := analyse(t, b.String())
	s := r.Summary()
	for _, want := range []string{"and 52 more", "in 60 resources", "and 55 more", strings.Repeat("r", 59) + "…"} {
		if !strings.Contains(s, want) {
			t.Errorf("the summary lacks %q:\n%s", want, s)
		}
	}
	w := r.Wire()
	if len(w.ByService) != maxWire || len(w.TopResources) != maxWire || len(w.Untagged.Resources) != maxWire {
		t.Errorf("lists of %d, %d and %d entries, want %d each", len(w.ByService), len(w.TopResources), len(w.Untagged.Resources), maxWire)
	}
}

func TestWire(t *testing.T) {
	r := analyse(t, "date,service,resource,tags,cost,currency\n2026-01-01,A,vm-old,,10,EUR\n2026-02-01,A,vm-1,x,30,EUR\n")
	want := Wire{
		Currency: "EUR", Total: "40.00", Rows: 2, From: "2026-01-01", To: "2026-02-01",
		ByService:    []WireShare{{Name: "A", Cost: "40.00", Share: "100.0 %"}},
		TopResources: []WireShare{{"vm-1", "A", "30.00", "75.0 %"}, {"vm-old", "A", "10.00", "25.0 %"}},
		Months:       []WireMonth{{Month: "2026-01", Days: 1, Cost: "10.00"}, {"2026-02", 1, "30.00", "+200.0 %"}},
		Untagged:     &WireUntagged{Cost: "10.00", Share: "25.0 %", Rows: 1, Resources: []string{"vm-old"}},
		Idle:         []WireResource{{"vm-old", "A", "10.00", "its name says “old”"}},
	}
	if diff := cmp.Diff(want, r.Wire()); diff != "" {
		t.Errorf("wire form (-want +got):\n%s", diff)
	}
	spike := analyse(t, "date,service,cost\n"+days("A", "1", "1", "1", "9", "1", "1", "1")).Wire()
	if diff := cmp.Diff([]WireAnomaly{{"2026-01-04", "A", "9.00", "1.00"}}, spike.Anomalies); diff != "" {
		t.Errorf("anomalies (-want +got):\n%s", diff)
	}
}

// The order of the rows changes no sum, and the parts make up the whole.
func TestSumsDoNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("2026-%02d-%02d,%s,%s,%d.%02d", rapid.IntRange(1, 12).Draw(t, "month"), rapid.IntRange(1, 28).Draw(t, "day"),
				rapid.SampledFrom([]string{"A", "B", ""}).Draw(t, "service"), rapid.SampledFrom([]string{"x", "y", ""}).Draw(t, "resource"),
				rapid.IntRange(0, 1e6).Draw(t, "units"), rapid.IntRange(0, 99).Draw(t, "cents"))
		})
		rows := rapid.SliceOfN(row, 1, 40).Draw(t, "rows")
		shuffled := rapid.Permutation(rows).Draw(t, "shuffled")
		read := func(rows []string) Report {
			table, err := Read("date,service,resource,cost\n" + strings.Join(rows, "\n"))
			if err != nil {
				t.Fatalf("Read: %v", err)
			}
			return Analyse(table)
		}
		a, b := read(rows), read(shuffled)
		if a.Total.Cmp(b.Total) != 0 {
			t.Fatalf("totals %s and %s", a.Total.RatString(), b.Total.RatString())
		}
		parts, months := new(big.Rat), new(big.Rat)
		for _, s := range a.Services {
			parts.Add(parts, s.Cost)
		}
		for _, m := range a.Months {
			months.Add(months, m.Cost)
		}
		if parts.Cmp(a.Total) != 0 || months.Cmp(a.Total) != 0 {
			t.Fatalf("services add up to %s, months to %s, want %s", parts.RatString(), months.RatString(), a.Total.RatString())
		}
	})
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"", "cost", "cost\n1\n", "a;b\n1;2", "date,service,resource,tags,cost,currency,quantity,utilization\n2026-01-01,A,r,{},1.5,EUR,0,3\n",
		"fecha;importe\n31/12/2025;-1.234,50 €\n", "cost\n1e-18\n(3)\n", "cost\n\"1\n", "\ufeffcost\r\n1\r\n", "cost\n\xff\n", "cost,cost\n1,2\n",
		"date,cost\n" + days("A", "1")[:10] + ",1\n", "cost\n" + strings.Repeat("9", 40) + "\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		table, err := Read(text)
		if err != nil {
			var e *RowError
			if !errors.As(err, &e) {
				t.Fatalf("error %v, want a *RowError", err)
			}
			if lines := 1 + strings.Count(text, "\n"); e.Row < 1 || e.Row > lines || e.Detail == "" {
				t.Fatalf("error %+v in a text of %d lines", e, lines)
			}
			return
		}
		r := Analyse(table)
		if s := r.Summary(); !utf8.ValidString(s) || !strings.Contains(s, "By service") {
			t.Fatalf("summary %q", s)
		}
		if w := r.Wire(); w.Rows != len(table.Rows) || w.Total == "" {
			t.Fatalf("wire form %+v", w)
		}
	})
}

package costs

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadUnderstandsColumns(t *testing.T) {
	tests := []struct {
		name, text string
		want       string // of the first row: day service resource tags cost, by "|"
	}{
		{
			"an Azure export",
			"Date,ServiceName,ResourceName,Quantity,CostInBillingCurrency,BillingCurrency,Tags\n01/31/2026,Storage,st1,4,1.50,EUR,\"{\"\"env\"\": \"\"prod\"\"}\"\n",
			"2026-01-31|Storage|st1|{\"env\": \"prod\"}|3/2",
		},
		{
			"Spanish, semicolons, decimal commas",
			"Fecha;Servicio;Recurso;Etiquetas;Importe (EUR)\n31/01/2026;Máquinas virtuales;vm-1;;1.234,50 €\n",
			"2026-01-31|Máquinas virtuales|vm-1||2469/2",
		},
		{"Portuguese", "Data;Serviço;Custo\n2026-01-31;Rede;R$ 0,50\n", "2026-01-31|Rede|||1/2"},
		{"Chinese", "日期,服务,费用\n2026-01-31,存储,2\n", "2026-01-31|存储|||2"},
		{"tabs with empty fields", "date\tservice\tresource\tcost\n2026-01-31\t\tr\t1\n", "2026-01-31||r||1"},
		{"only costs", "cost\n7\n", "0001-01-01||||7"},
		{"a byte order mark", "\ufeffcost\n7\n", "0001-01-01||||7"},
		{"the surer of two cost columns", "cost,CostInBillingCurrency\n1,2\n", "0001-01-01||||2"},
		{"line ends inside a field", "service,cost\n\"a\nb\",1\n", "0001-01-01|a b|||1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			table, err := Read(tt.text)
			if err != nil {
				t.Fatalf("Read: %v", err)
			}
			r := table.Rows[0]
			got := strings.Join([]string{r.Day.Format(time.DateOnly), r.Service, r.Resource, r.Tags, r.Cost.RatString()}, "|")
			if got != tt.want {
				t.Errorf("row:\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	tests := []struct {
		name, text string
		want       RowError
	}{
		{"nothing", "", RowError{Row: 1, Detail: "the table is empty"}},
		{"no rows", "date,cost\n", RowError{Row: 1, Detail: "the table has a header and no rows"}},
		{"no costs", "date,price\n2026-01-01,1\n", RowError{Row: 1, Detail: `no column of costs; the header has "date, price"`}},
		{"a cost that is none", "service,cost\na,1\nb,abc\n", RowError{Row: 3, Column: "cost", Detail: `"abc" is not an amount`}},
		{"an empty cost", "service,cost\na,\n", RowError{Row: 2, Column: "cost", Detail: `"" is not an amount`}},
		{"marks that contradict", "service,cost\na,\"1,50\"\nb,1.50\n", RowError{Row: 3, Column: "cost", Detail: `"1.50" is not an amount`}},
		{"a date that is none", "date,cost\n2026-02-30,1\n", RowError{Row: 2, Column: "date", Detail: `"2026-02-30" is not a date`}},
		{"an order that contradicts", "date,cost\n13/02/2026,1\n02/13/2026,1\n", RowError{Row: 3, Column: "date", Detail: `"02/13/2026" is not a date`}},
		{"a quantity that is none", "quantity,cost\nx,1\n", RowError{Row: 2, Column: "quantity", Detail: `"x" is not a number`}},
		{"two currencies", "cost,currency\n1,EUR\n1,USD\n", RowError{Row: 3, Column: "currency", Detail: `"USD" differs from EUR above; costs in several currencies cannot be added up`}},
		{"a short row", "a,cost\n1,2\n3\n", RowError{Row: 3, Detail: "has 1 fields, the header 2"}},
		{"a long row", "a,cost\n1,2,3\n", RowError{Row: 2, Detail: "has 3 fields, the header 2"}},
		{"an open quotation", "a,cost\n\"x,2\n", RowError{Row: 2, Detail: "a quotation mark is missing or out of place (line 2, byte 6)"}},
		{"a quotation inside", "a,cost\nx\"y,2\n", RowError{Row: 2, Detail: "a quotation mark is missing or out of place (line 2, byte 2)"}},
		{"not UTF-8", "a,cost\nx,1\n\xff,2\n", RowError{Row: 3, Detail: "is not UTF-8"}},
		{"a long value is cut", "cost\n" + strings.Repeat("x", 100) + "\n", RowError{Row: 2, Column: "cost", Detail: `"` + strings.Repeat("x", 39) + `…" is not an amount`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(tt.text)
			var got *RowError
			if !errors.As(err, &got) {
				t.Fatalf("Read: got %v, want a *RowError", err)
			}
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRowErrorNamesThePlace(t *testing.T) {
	tests := []struct {
		name string
		err  RowError
		want string
	}{
		{"a field", RowError{Row: 17, Column: "Cost", Detail: `"abc" is not an amount`}, `row 17, column "Cost": "abc" is not an amount`},
		{"a row", RowError{Row: 3, Detail: "has 1 fields, the header 2"}, "row 3: has 1 fields, the header 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.err.Error(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestParseDate(t *testing.T) {
	tests := []struct {
		name, in string
		order    dateOrder
		want     string // "" = refused
	}{
		{"ISO", "2026-02-03", monthFirst, "2026-02-03"},
		{"ISO, whatever the order", "2026-02-03", dayFirst, "2026-02-03"},
		{"compact", "20260203", monthFirst, "2026-02-03"},
		{"a time of day", "2026-02-03T04:05:06Z", monthFirst, "2026-02-03"},
		{"a time in another zone keeps its day", "2026-02-03T23:00:00-05:00", monthFirst, "2026-02-03"},
		{"a month", "2026-02", monthFirst, "2026-02-01"},
		{"a month in words", "Feb 2026", monthFirst, "2026-02-01"},
		{"American", "02/03/2026", monthFirst, "2026-02-03"},
		{"European", "02/03/2026", dayFirst, "2026-03-02"},
		{"dots", "2.3.2026", dayFirst, "2026-03-02"},
		{"no such day", "31/02/2026", dayFirst, ""},
		{"words", "yesterday", monthFirst, ""},
		{"empty", "", monthFirst, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := parseDate(tt.in, tt.order)
			if s := got.Format(time.DateOnly); ok != (tt.want != "") || ok && s != tt.want {
				t.Errorf("parseDate(%q) = %s, %v; want %q", tt.in, s, ok, tt.want)
			}
		})
	}
}

func TestOrderOf(t *testing.T) {
	tests := []struct {
		name   string
		values []string
		mark   byte
		want   dateOrder
	}{
		{"a day above 12 in front", []string{"02/03/2026", "13/03/2026"}, '.', dayFirst},
		{"a day above 12 behind", []string{"02/03/2026", "03/13/2026"}, ',', monthFirst},
		{"all fit both, decimal points", []string{"02/03/2026"}, '.', monthFirst},
		{"all fit both, decimal commas", []string{"02/03/2026"}, ',', dayFirst},
		{"ISO says nothing", []string{"2026-02-03"}, '.', monthFirst},
		{"no dates", nil, '.', monthFirst},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := orderOf(tt.values, tt.mark); got != tt.want {
				t.Errorf("orderOf(%q) = %v, want %v", tt.values, got, tt.want)
			}
		})
	}
}

func TestUnitOf(t *testing.T) {
	for header, want := range map[string]string{
		"Cost (EUR)": "EUR", "Importe ( USD )": "USD", "Cost": "", "Cost (eur)": "", "Cost (EUR": "", "Cost (per day)": "", "Cost ()": "",
	} {
		if got := unitOf(header); got != want {
			t.Errorf("unitOf(%q) = %q, want %q", header, got, want)
		}
	}
}

func TestDelimiterOf(t *testing.T) {
	tests := []struct {
		name, text string
		want       rune
	}{
		{"commas", "a,b;c,d\n", ','},
		{"semicolons", "a;b;c,d\n1,5;2;3", ';'},
		{"tabs", "a\tb\n", '\t'},
		{"bars", "a|b|c\n", '|'},
		{"one column", "cost\n1;2\n", ','},
		{"empty", "", ','},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := delimiterOf(tt.text); got != tt.want {
				t.Errorf("delimiterOf(%q) = %q, want %q", tt.text, got, tt.want)
			}
		})
	}
}

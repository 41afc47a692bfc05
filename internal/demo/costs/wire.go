package costs

// Wire is a Report as it goes into a task's result. Amounts are strings with
// two decimals, because a JSON number would be read as a binary fraction.
type Wire struct {
	Currency     string         `json:"currency,omitempty"`
	Total        string         `json:"total"`
	Rows         int            `json:"rows"`
	From         string         `json:"from,omitempty"`
	To           string         `json:"to,omitempty"`
	ByService    []WireShare    `json:"by_service"`
	TopResources []WireShare    `json:"top_resources"`
	Months       []WireMonth    `json:"months"`
	Untagged     *WireUntagged  `json:"untagged,omitempty"`
	Anomalies    []WireAnomaly  `json:"anomalies"`
	Idle         []WireResource `json:"idle"`
}

// WireShare is one part of the total.
type WireShare struct {
	Name    string `json:"name"`
	Service string `json:"service,omitempty"`
	Cost    string `json:"cost"`
	Share   string `json:"share"`
}

// WireMonth is one month; Change compares costs per day with the month before.
type WireMonth struct {
	Month  string `json:"month"`
	Days   int    `json:"days"`
	Cost   string `json:"cost"`
	Change string `json:"change_per_day,omitempty"`
}

// WireUntagged is what carries no tag.
type WireUntagged struct {
	Cost      string   `json:"cost"`
	Share     string   `json:"share"`
	Rows      int      `json:"rows"`
	Resources []string `json:"resources"`
}

// WireAnomaly is a day far above the usual.
type WireAnomaly struct {
	Date    string `json:"date"`
	Service string `json:"service"`
	Cost    string `json:"cost"`
	Median  string `json:"median"`
}

// WireResource is a resource that looks idle.
type WireResource struct {
	Resource string `json:"resource"`
	Service  string `json:"service,omitempty"`
	Cost     string `json:"cost"`
	Reason   string `json:"reason"`
}

// maxWire bounds each list of a Wire.
const maxWire = 50

// Wire returns the report's wire form.
func (r Report) Wire() Wire {
	w := Wire{
		Currency: r.Currency, Total: r.Total.FloatString(2), Rows: r.Rows,
		ByService: r.wireShares(r.Services), TopResources: r.wireShares(r.Resources),
	}
	if !r.From.IsZero() {
		w.From, w.To = r.From.Format(day), r.To.Format(day)
	}
	for i := max(0, len(r.Months)-maxWire); i < len(r.Months); i++ {
		m := r.Months[i]
		wm := WireMonth{Month: m.First.Format("2006-01"), Days: m.Days, Cost: m.Cost.FloatString(2)}
		if i > 0 {
			wm.Change = change(r.Months[i-1].perDay(), m.perDay())
		}
		w.Months = append(w.Months, wm)
	}
	if u := r.Untagged; u != nil {
		w.Untagged = &WireUntagged{Cost: u.Cost.FloatString(2), Share: percent(u.Cost, r.Total), Rows: u.Rows, Resources: first(u.Resources)}
	}
	for _, s := range first(r.Spikes) {
		w.Anomalies = append(w.Anomalies, WireAnomaly{s.Day.Format(day), s.Service, s.Cost.FloatString(2), s.Median.FloatString(2)})
	}
	for _, i := range first(r.Idle) {
		w.Idle = append(w.Idle, WireResource{i.Resource, i.Service, i.Cost.FloatString(2), i.Reason})
	}
	return w
}

func (r Report) wireShares(list []Share) []WireShare {
	var out []WireShare
	for _, s := range first(list) {
		out = append(out, WireShare{s.Name, s.Of, s.Cost.FloatString(2), percent(s.Cost, r.Total)})
	}
	return out
}

func first[T any](list []T) []T { return list[:min(len(list), maxWire)] }

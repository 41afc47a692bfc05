package costs

import (
	"slices"
	"strings"
	"unicode"
)

// column is a meaning a column of the file may have.
type column uint8

const (
	cost column = iota
	date
	service
	resource
	tags
	currency
	quantity
	usage
)

// columnNames are the headers of each column, the surest first, as exports of
// Azure, AWS, Google and people's own tables have them; in lower case, letters
// and digits only.
var columnNames = map[column][]string{
	cost: {
		"costinbillingcurrency", "pretaxcost", "costinusd", "unblendedcost", "cost", "totalcost", "netcost", "amount", "charge", "total",
		"custo", "valor", "coste", "costo", "importe", "费用", "成本", "金额",
	},
	date: {
		"date", "usagedate", "usagedatetime", "usagestartdate", "day", "billingdate", "month", "billingmonth", "period",
		"data", "dia", "fecha", "mes", "mês", "日期", "月份",
	},
	service:  {"servicename", "service", "metercategory", "consumedservice", "productcode", "product", "serviço", "servico", "servicio", "服务"},
	resource: {"resourcename", "resource", "resourceid", "instancename", "instanceid", "recurso", "资源"},
	tags:     {"tags", "tag", "labels", "etiquetas", "etiqueta", "标签"},
	currency: {"billingcurrency", "billingcurrencycode", "currency", "currencycode", "moeda", "moneda", "货币"},
	quantity: {"quantity", "usagequantity", "consumedquantity", "usageamount", "quantidade", "cantidad", "数量"},
	usage:    {"avgcpupercent", "averagecpu", "cpupercent", "avgutilization", "utilization", "utilisation", "utilizacion", "utilização", "使用率"},
}

// findColumns maps each meaning to the first column that carries the surest of
// its names.
func findColumns(header []string) map[column]int {
	found := make(map[column]int)
	for c, names := range columnNames {
		best := len(names)
		for i, h := range header {
			if rank := slices.Index(names, letters(h)); rank >= 0 && rank < best {
				best, found[c] = rank, i
			}
		}
	}
	return found
}

// unitOf is the currency a header like "Cost (EUR)" names, "" for none.
func unitOf(header string) string {
	_, rest, _ := strings.Cut(header, "(")
	code, _, closed := strings.Cut(rest, ")")
	code = strings.TrimSpace(code)
	if !closed || len(code) != 3 || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return ""
	}
	return code
}

// letters reduces a header to what columnNames hold. A unit in brackets, as in
// "Cost (EUR)", says nothing about the meaning.
func letters(header string) string {
	header, _, _ = strings.Cut(header, "(")
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, header)
}

package ranking_test

import (
	"fmt"

	"github.com/caprouter/caprouter/internal/lexical/ranking"
)

func ExampleRanker() {
	r := ranking.New([]ranking.Document{
		{Name: "get_weather.byCity", Description: "Current conditions for a place"},
		{Name: "currency_exchange", Description: "Converts a value from one currency to another"},
	})
	for _, text := range []string{"is the weather good in this city", "how much are 100 euros in dollars"} {
		fmt.Println(r.Rank(text)[0].Name)
	}
	// Output:
	// get_weather.byCity
	// currency_exchange
}

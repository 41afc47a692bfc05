package redact_test

import (
	"fmt"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/redact"
)

func Example() {
	r, err := redact.New(redact.Config{Allow: []string{"@example.org"}})
	if err != nil {
		panic(err)
	}
	m := r.StartMasking()
	prompt := m.MaskText("Tell bob@example.com and help@example.org that card 4111 1111 1111 1111 is blocked. [EMAIL_1]?")
	fmt.Println(prompt)
	fmt.Println(m.MaskText("earlier: who is bob@example.com?"))
	fmt.Println(m.Kinds())

	answer := "I wrote to [EMAIL_1] about [CARD_1]."
	fmt.Println(m.RestoreText(answer, nil))
	fmt.Println(m.RestoreText(answer, contract.DataClasses{redact.Email}))
	fmt.Println(string(m.MaskJSON([]byte(`{"to":"bob@example.com","ip":"10.0.0.7"}`), contract.DataClasses{redact.Email})))
	fmt.Println(r.RedactText("no mailbox eve@example.com"))
	// Output:
	// Tell [EMAIL_1] and help@example.org that card [CARD_1] is blocked. [LITERAL_1]?
	// earlier: who is [EMAIL_1]?
	// [card email]
	// I wrote to bob@example.com about 4111 1111 1111 1111.
	// I wrote to bob@example.com about [CARD_1].
	// {"to":"bob@example.com","ip":"[IP_1]"}
	// no mailbox [EMAIL]
}

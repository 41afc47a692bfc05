// Package email finds the text that the sender of an e-mail wrote.
package email

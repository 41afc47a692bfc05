package mcpfile

// blankComments replaces comments and trailing commas by blanks, so that positions
// stay the same. Line breaks remain.
func blankComments(data []byte) []byte {
	out := append([]byte(nil), data...)
	comma := -1 // position of a comma that is followed by blanks only
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			comma = -1
			i = endOfString(out, i)
		case c == '/' && i+1 < len(out) && (out[i+1] == '/' || out[i+1] == '*'):
			i = blankComment(out, i)
		case c == ',':
			comma = i
		case c == '}' || c == ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			comma = -1
		}
	}
	return out
}

// endOfString returns the position of the quotation mark that ends the string at i.
func endOfString(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i
}

// blankComment replaces the comment at i and returns the position of its last byte.
func blankComment(data []byte, i int) int {
	block := data[i+1] == '*'
	for start := i; i < len(data); i++ {
		if block && i >= start+3 && data[i] == '/' && data[i-1] == '*' {
			data[i-1], data[i] = ' ', ' '
			return i
		}
		if data[i] == '\n' {
			if !block {
				return i
			}
			continue
		}
		if !block || data[i] != '*' || i == start+1 {
			data[i] = ' '
		}
	}
	return i
}

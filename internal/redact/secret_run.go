package redact

// maxParts bounds how many parts behind dots belong to a token: no maker's has
// more, and each part is read again for every run up to so many before it.
const maxParts = 4

// run is a run of letters, digits, "-" and "_", which ends at end. What follows
// it behind dots is read once, however many tokens seem to start in the run.
type run struct {
	text            string
	end             int
	followed        bool
	jwtEnd, dotsEnd int
}

// jwt returns where the run ends as a JWT whose header it closes, 0 for none.
func (r *run) jwt() int {
	r.follow()
	return r.jwtEnd
}

// dotted returns where the run and the parts behind it end.
func (r *run) dotted() int {
	r.follow()
	return r.dotsEnd
}

func (r *run) follow() {
	if r.followed {
		return
	}
	r.followed, r.dotsEnd = true, r.end
	at, parts := r.end, 1 // of the JWT
	for n := 0; n < maxParts && byteAt(r.text, at) == '.'; n++ {
		end := pastToken(r.text, at+1)
		if end > at+1 && r.dotsEnd == at {
			r.dotsEnd = end
		}
		if end == at+1 && parts != 2 { // a token that is not signed ends in a dot
			break
		}
		at = end
		parts++
	}
	if parts >= 3 {
		r.jwtEnd = at
	}
}

// pastToken returns where the run at i ends.
func pastToken(text string, i int) int {
	for i < len(text) && isToken(text[i]) {
		i++
	}
	return i
}

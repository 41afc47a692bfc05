// Package docsearch finds the sections of a set of Markdown files that answer a
// question, for the demo's retrieval agent. It cuts the files at their
// headings, ranks the sections with BM25 and picks the passage to quote. It
// knows nothing of tasks and reads only the file system it is given.
//
//	routing.md ─▶ sections ─▶ Index ── Search("how are ties broken?", 3) ─▶ hits
//
// The ranking is that of Robertson and Zaragoza, "The Probabilistic Relevance
// Framework: BM25 and Beyond" (2009), with the words of a heading counted
// several times. The same files and the same question give the same hits, in
// the same order.
package docsearch

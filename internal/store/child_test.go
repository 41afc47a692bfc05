package store_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/caprouter/caprouter/internal/store"
)

// runChild executes a role of a child process, and returns the exit code.
func runChild(role string) int {
	s, err := store.Open(context.Background(), store.Config{Dir: os.Getenv("STORE_DIR"), Owner: "child"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	switch role {
	case "hold":
		fmt.Println("open")
		select {}
	case "limit":
		return exceedFileSizeLimit(s)
	case "write":
		return writeUntilKilled(s)
	}
	return 2
}

// writeUntilKilled writes keys and messages from several goroutines until the process is killed,
// and prints each acknowledged key.
func writeUntilKilled(s *store.Store) int {
	ctx := context.Background()
	b, err := s.Bucket(ctx, store.BucketConfig{Name: "BUCKET"})
	if err != nil {
		return 1
	}
	l, err := s.Log(ctx, store.LogConfig{Name: "LOG", Subjects: []string{"log.>"}})
	if err != nil {
		return 1
	}
	out := bufio.NewWriter(os.Stdout)
	var mu sync.Mutex
	printLine := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = out.WriteString(line + "\n")
		_ = out.Flush()
	}
	run := os.Getpid()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("%d.%d.%d", run, w, i)
				var err error
				if i%2 == 0 {
					_, err = b.Create(ctx, key, []byte(key))
				} else {
					_, err = l.Append(ctx, "log."+key, []byte(key), store.AppendOptions{})
				}
				if err != nil {
					return
				}
				printLine(key)
			}
		})
	}
	wg.Wait()
	return 1
}

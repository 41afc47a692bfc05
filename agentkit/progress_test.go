package agentkit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
)

func TestProgress_SendsReportsInOrder(t *testing.T) {
	agentkit.Progress(t.Context(), "dropped", 1) // outside of a task: must not panic
	synctest.Test(t, func(t *testing.T) {
		d := newFakeCallbackServer()
		a := d.agent(t, nil, func(ctx context.Context, _ contract.Task) (contract.Result, error) {
			agentkit.AcceptAsync(ctx)
			for _, p := range []struct {
				message string
				percent float64
			}{{"reading", -1}, {"", 5}, {"checking", 12.5}, {"writing", 250}, {"no number", math.NaN()}, {strings.Repeat("é", 1001), 0}} {
				agentkit.Progress(ctx, p.message, p.percent)
			}
			return agentkit.Answer("done"), nil
		})
		serve(a, d.post(d.task()))
		if err := a.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		progressURL := strings.TrimSuffix(resultURL, "result") + "progress"
		want := []callbackPost{
			{URL: progressURL, Token: "task-token", Body: `{"message":"reading"}`},
			{URL: progressURL, Token: "task-token", Body: `{"message":"checking","percent":12.5}`},
			{URL: progressURL, Token: "task-token", Body: `{"message":"writing","percent":100}`},
			{URL: progressURL, Token: "task-token", Body: `{"message":"no number"}`},
			{URL: progressURL, Token: "task-token", Body: `{"message":"` + strings.Repeat("é", 1000) + `","percent":0}`},
			{URL: resultURL, Token: "task-token", Body: doneBody},
		}
		if diff := cmp.Diff(want, d.received()); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
	})
}

// Synchronous work can report its progress as well; without a callback the reports are dropped.
func TestProgress_SynchronousWork(t *testing.T) {
	for callback, want := range map[bool]int{true: 1, false: 0} {
		synctest.Test(t, func(t *testing.T) {
			d := newFakeCallbackServer()
			a := d.agent(t, nil, func(ctx context.Context, _ contract.Task) (contract.Result, error) {
				agentkit.Progress(ctx, "half", 50)
				<-time.After(time.Second)
				return agentkit.Answer("done"), nil
			})
			task := d.task()
			if !callback {
				task = validTask()
			}
			if res := result(t, serve(a, d.post(task))); res.Text() != "done" {
				t.Errorf("result = %+v", res)
			}
			if err := a.Shutdown(t.Context()); err != nil || len(d.received()) != want {
				t.Errorf("Shutdown: got %v and %d progress reports, want %d", err, len(d.received()), want)
			}
		})
	}
}

// If the router is slow, it gets the latest reports in order, and the work does not wait for it.
func TestProgress_DropsOldestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeCallbackServer()
		d.answer = func(_ int, r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/progress") {
				<-time.After(time.Second)
			}
			return answer(http.StatusNoContent, ""), nil
		}
		a := d.agent(t, nil, func(ctx context.Context, _ contract.Task) (contract.Result, error) {
			agentkit.AcceptAsync(ctx)
			agentkit.Progress(ctx, "first", 0)
			synctest.Wait() // the first report is being sent
			for i := range 1000 {
				agentkit.Progress(ctx, fmt.Sprint(i), float64(i)/10)
			}
			if took := time.Since(d.began); took != 0 {
				t.Errorf("got Progress return after %v, want at once", took)
			}
			<-time.After(time.Minute)
			return agentkit.Answer("done"), nil
		})
		checkAccepted(t, serve(a, d.post(d.task())))
		if err := a.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range d.received() {
			var progress contract.Progress
			if err := json.Unmarshal([]byte(p.Body), &progress); err != nil {
				t.Fatal(err)
			}
			got = append(got, progress.Message)
		}
		want := []string{"first"}
		for i := 984; i < 1000; i++ {
			want = append(want, fmt.Sprint(i))
		}
		if diff := cmp.Diff(append(want, ""), got); diff != "" { // the last post is the result
			t.Errorf("posts (-want +got):\n%s", diff)
		}
	})
}

// Progress does not delay a result: reports that are not sent within two seconds are dropped,
// including the one in flight, so that none follows the result.
func TestProgress_DoesNotDelayResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeCallbackServer()
		var sending atomic.Int32 // progress reports
		d.answer = func(i int, r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, "/progress") {
				if n := sending.Load(); n != 0 {
					t.Errorf("got %d progress reports in flight at the time of the result, want 0", n)
				}
				return answer(http.StatusOK, ""), nil
			}
			sending.Add(1)
			defer sending.Add(-1)
			if i == 0 {
				<-time.After(time.Second)
				return answer(http.StatusNoContent, ""), nil
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		a := d.agent(t, nil, func(ctx context.Context, _ contract.Task) (contract.Result, error) {
			agentkit.AcceptAsync(ctx)
			for range 10 {
				agentkit.Progress(ctx, "x", 1)
			}
			return agentkit.Answer("done"), nil
		})
		serve(a, d.post(d.task()))
		if err := a.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		posts := d.received()
		if last := posts[len(posts)-1]; last.URL != resultURL || last.At > 2*time.Second || len(posts) > 4 {
			t.Errorf("got %d posts, the last %+v; want the result after at most two seconds", len(posts), last)
		}
	})
}

// After a final status, or 404 for an unknown task, no more reports are sent.
func TestProgress_StopsAfterFinalStatus(t *testing.T) {
	for _, status := range []int{401, 404, 409} {
		synctest.Test(t, func(t *testing.T) {
			d := newFakeCallbackServer()
			d.answer = statuses(status, 200)
			a := d.agent(t, nil, func(ctx context.Context, _ contract.Task) (contract.Result, error) {
				agentkit.AcceptAsync(ctx)
				for range 5 {
					agentkit.Progress(ctx, "x", 1)
					<-time.After(time.Second)
				}
				return agentkit.Answer("done"), nil
			})
			checkAccepted(t, serve(a, d.post(d.task())))
			if err := a.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			posts := d.received()
			if len(posts) != 2 || posts[1].URL != resultURL {
				t.Errorf("after status %d: got %+v at the router, want one progress report and the result", status, posts)
			}
		})
	}
}

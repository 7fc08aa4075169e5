package serve

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestARequestThatTheQueueNeverHoldsIsNotToldToComeBack(t *testing.T) {
	q := &queue{most: 2, now: time.Now}
	var api *apiError
	if _, err := q.admit(3); !errors.As(err, &api) || api.status != http.StatusBadRequest || !strings.Contains(api.message, "at most 2") {
		t.Errorf("three answers in a queue of two: %v, want 400 with the bound", err)
	}
	if _, err := q.admit(2); err != nil {
		t.Error(err)
	}
	if _, err := q.admit(1); !errors.As(err, &api) || api.status != http.StatusTooManyRequests || api.retry == 0 {
		t.Errorf("one answer beside two: %v, want 429 with advice", err)
	}
}

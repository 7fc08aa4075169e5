package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	// attemptBase bounds one attempt of a small call; attemptRate (bytes a
	// second) adds what a large one needs on a slow link.
	attemptBase = 30 * time.Second
	attemptRate = 4 << 20
	// firstPause and longestPause bound the pauses between attempts, each drawn
	// below a limit that doubles: a fleet does not return in step.
	firstPause   = 50 * time.Millisecond
	longestPause = 2 * time.Second
)

// call runs one store call to its end: attempts with pauses until one answers,
// the outage limit passes, or the caller's context ends. do is told whether an
// earlier attempt may have taken effect.
func (s *S3) call(ctx context.Context, verb, key string, size int64, do func(ctx context.Context, repeated bool) error) error {
	perAttempt := attemptBase + time.Duration(size/attemptRate)*time.Second
	total, cancel := context.WithTimeout(ctx, s.outage+perAttempt)
	defer cancel()
	began := time.Now()
	limit := firstPause
	for attempt := 1; ; attempt++ {
		err := s.attempt(total, perAttempt, func(ctx context.Context) error { return do(ctx, attempt > 1) })
		if err == nil {
			return nil
		}
		if final := classify(err); final != nil {
			return fmt.Errorf("%s %s: %w", verb, key, final)
		}
		// How long to pause is no choice of the run: it is in no result.
		pause := time.Duration(rand.Int64N(int64(limit)) + 1)
		limit = min(2*limit, longestPause)
		if time.Since(began)+pause > s.outage || !sleep(total, pause) {
			return fmt.Errorf("%s %s: object store %s gave no answer in %v (%d attempts): %w", verb, key, s.where, time.Since(began).Round(time.Millisecond), attempt, errors.Join(err, context.Cause(ctx)))
		}
	}
}

func (s *S3) attempt(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// classify returns the error to report at once, or nil when another attempt
// may succeed.
func classify(err error) error {
	for _, known := range []error{ErrExists, ErrChanged} {
		if errors.Is(err, known) {
			return err
		}
	}
	code := apiCode(err)
	switch status := statusCode(err); {
	case refusesCaller(code) || status == http.StatusForbidden:
		return fmt.Errorf("the store refuses these credentials; check access key, secret key and the clock: %w", err)
	case code == "NoSuchBucket":
		return fmt.Errorf("the bucket does not exist; create it: %w", err)
	case status == http.StatusInsufficientStorage:
		return fmt.Errorf("%w; free some: %w", ErrNoSpace, err)
	case code == "NoSuchKey" || code == "NotFound": // the latter answers HEAD
		return ErrNotFound
	case retryableStatus(status) || code == "BadDigest" || code == "ConditionalRequestConflict" || code == "NoSuchUpload":
		return nil
	case status >= 400:
		return err
	}
	return nil // the network: no answer, or a broken one
}

// refusesCaller: the codes of AWS, and versitygw's for an unknown key (a 404).
func refusesCaller(code string) bool {
	return code == "InvalidAccessKeyId" || code == "SignatureDoesNotMatch" || code == "XAdminUserNotFound"
}

// retryableStatus: the store is there but could not do it now.
func retryableStatus(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

// preconditionError turns the store's refusal of a conditional write into
// ErrExists or ErrChanged; nil when err is something else.
func preconditionError(err error, opt PutOptions) error {
	switch {
	case err == nil:
		return nil
	case opt.IfNoneMatch && (errors.Is(err, ErrExists) || statusCode(err) == http.StatusPreconditionFailed):
		return ErrExists
	case opt.IfMatch != "" && (statusCode(err) == http.StatusPreconditionFailed || apiCode(err) == "NoSuchKey"):
		return ErrChanged
	}
	return nil
}

func statusCode(err error) int {
	var re *smithyhttp.ResponseError
	if errors.As(err, &re) {
		return re.HTTPStatusCode()
	}
	return 0
}

func apiCode(err error) string {
	var ae smithy.APIError
	if errors.As(err, &ae) {
		return ae.ErrorCode()
	}
	return ""
}

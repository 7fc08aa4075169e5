package inputs

import "context"

// Await returns what read does, or ctx's error as soon as ctx ends: a file of a slow disk, a mount that is gone or a pipe
// that nobody writes to holds a read for as long as it likes, and no read can be called off. What it was reading is left.
func Await[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	done := make(chan result, 1)
	go func() {
		v, err := read()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

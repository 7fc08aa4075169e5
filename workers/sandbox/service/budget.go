package service

import "sync/atomic"

// budget is the memory that everything held for clients is charged to, in bytes.
type budget struct {
	limit int64
	held  atomic.Int64
}

// take charges n bytes unless the limit would be passed.
func (b *budget) take(n int64) bool {
	if b.held.Add(n) > b.limit {
		b.held.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.held.Add(-n) }

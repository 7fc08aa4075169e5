package service

import (
	"container/list"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"
)

// digest tells programs apart.
type digest [sha256.Size]byte

// digestOf hashes texts so that no two lists of them collide.
func digestOf(texts ...string) digest {
	h := sha256.New()
	for _, s := range texts {
		fmt.Fprintf(h, "%d:", len(s))
		h.Write([]byte(s))
	}
	return digest(h.Sum(nil))
}

// errOtherProgram refuses an idempotency key that stands for something else.
var errOtherProgram = errors.New("the call id belongs to another program or other limits: give each call an id of its own")

// ledger finds calls by idempotency key while they run and for a while afterwards. Results are kept oldest out, within bytes
// and time. It is guarded by the desk's mutex.
type ledger struct {
	calls map[string]*ticket
	kept  map[string]*list.Element
	order list.List // of kept, oldest first
	bytes int64     // of the results in order
	most  int64
	keep  time.Duration
	give  func(int64) // returns bytes to the budget
	filed int         // orphans so far

	orphans map[digest][]*ticket // running or kept, whose client went away without the result
}

// kept is one kept result.
type kept struct {
	t     *ticket
	until time.Time
}

func newLedger(most int64, keep time.Duration, give func(int64)) ledger {
	return ledger{calls: map[string]*ticket{}, kept: map[string]*list.Element{}, orphans: map[digest][]*ticket{}, most: most, keep: keep, give: give}
}

// find returns the call with a key, nil if there is none.
func (l *ledger) find(key string, d digest) (*ticket, error) {
	if key == "" {
		return nil, nil
	}
	l.expire()
	t := l.calls[key]
	if t == nil {
		return nil, nil
	}
	if t.digest != d {
		return nil, errOtherProgram
	}
	if t.state == ended && t.outcome.retry { // it did not complete: a new try is what is asked for
		if t.waiters == 0 {
			l.drop(l.kept[key])
		}
		delete(l.calls, key)
		return nil, nil
	}
	if e := l.kept[key]; e != nil {
		l.take(e)
	}
	return t, nil
}

func (l *ledger) open(t *ticket) {
	if t.key != "" {
		l.calls[t.key] = t
	}
}

// settle is told when an ended ticket has no waiter: it is kept if it has a key, and forgotten otherwise.
func (l *ledger) settle(t *ticket) {
	if t.key == "" || l.calls[t.key] != t {
		l.give(t.bytes)
		return
	}
	l.expire()
	l.kept[t.key] = l.order.PushBack(&kept{t, time.Now().Add(l.keep)})
	l.bytes += t.bytes
	for l.bytes > l.most && l.order.Len() > 0 {
		l.drop(l.order.Front())
	}
}

// take un-keeps a result that somebody waits for again.
func (l *ledger) take(e *list.Element) {
	t := e.Value.(*kept).t
	l.order.Remove(e)
	delete(l.kept, t.key)
	l.bytes -= t.bytes
}

// drop forgets a kept result.
func (l *ledger) drop(e *list.Element) {
	if e == nil {
		return
	}
	t := e.Value.(*kept).t
	l.take(e)
	delete(l.calls, t.key)
	l.give(t.bytes)
	if i := slices.Index(l.orphans[t.digest], t); i >= 0 {
		l.removeOrphan(t.digest, i)
	}
}

// orphan files a call without a key of its own, so that its digest finds it.
func (l *ledger) orphan(t *ticket) {
	l.filed++
	t.key = fmt.Sprintf("orphan %d", l.filed)
	l.calls[t.key] = t
	l.orphans[t.digest] = append(l.orphans[t.digest], t)
}

// adopt takes an orphan with a digest out of the ledger, nil if there is none.
func (l *ledger) adopt(d digest) *ticket {
	l.expire()
	if len(l.orphans[d]) == 0 {
		return nil
	}
	t := l.orphans[d][0]
	if e := l.kept[t.key]; e != nil {
		l.take(e)
	}
	l.removeOrphan(d, 0)
	delete(l.calls, t.key)
	t.key = ""
	return t
}

func (l *ledger) removeOrphan(d digest, i int) {
	if l.orphans[d] = slices.Delete(l.orphans[d], i, i+1); len(l.orphans[d]) == 0 {
		delete(l.orphans, d)
	}
}

func (l *ledger) expire() {
	for now := time.Now(); l.order.Len() > 0 && now.After(l.order.Front().Value.(*kept).until); {
		l.drop(l.order.Front())
	}
}

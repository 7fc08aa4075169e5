package service

import "container/list"

// queue holds the waiting tickets of one class. Rollouts take turns: each gives its oldest ticket, then goes to the back.
// It is guarded by the desk's mutex.
type queue struct {
	turns list.List                // of *rollout; each holds at least one ticket
	known map[string]*list.Element // by rollout id
	size  int                      // tickets that still wait
}

// rollout is the waiting tickets of one rollout, oldest first. Withdrawn ones stay until their turn.
type rollout struct {
	id      string
	tickets []*ticket
}

func (q *queue) push(t *ticket) {
	if q.known == nil {
		q.known = map[string]*list.Element{}
	}
	e := q.known[t.rollout]
	if e == nil {
		e = q.turns.PushBack(&rollout{id: t.rollout})
		q.known[t.rollout] = e
	}
	r := e.Value.(*rollout)
	r.tickets = append(r.tickets, t)
	q.size++
}

// pop takes the next waiting ticket, nil when there is none.
func (q *queue) pop() *ticket {
	for e := q.turns.Front(); e != nil; e = q.turns.Front() {
		r := e.Value.(*rollout)
		t := r.tickets[0]
		r.tickets[0], r.tickets = nil, r.tickets[1:]
		if len(r.tickets) == 0 {
			q.turns.Remove(e)
			delete(q.known, r.id)
		} else {
			q.turns.MoveToBack(e)
		}
		if t.state == waiting {
			q.size--
			return t
		}
	}
	return nil
}

package service

import "errors"

// errDraining ends what has not started when the service drains.
var errDraining = errors.New("the service is draining")

// errNobody kills a call that no client waits for.
var errNobody = errors.New("no client waits for the call")

// errCancelled kills a call by the client's wish.
var errCancelled = errors.New("cancelled by the client")

// errLate withdraws a call that did not start in time.
var errLate = errors.New("queue_timeout")

// errDeadline kills a running call at the deadline that its client set.
var errDeadline = errors.New("its deadline passed while it ran")

// again tells the ends after which the same call may be sent once more.
func again(why error) bool { return !errors.Is(why, errCancelled) && !errors.Is(why, errDeadline) }

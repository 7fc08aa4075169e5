// Package client runs calls on sandbox services over HTTP. A Client is a [sandbox.Runner].
//
// Invariants:
//
//   - A call that completed is never run again while the node that ran it lives: every send of a call carries the same idempotency key, and an answer that was
//     lost on its way is first asked for again at the node that has it.
//   - What a program did (error, timeout, oom, killed, output_limit) is a result and is never retried. Failures of the
//     infrastructure are, on another node, at most Options.Attempts times, after a pause that differs from call to call, and
//     within a budget, so that a sick fleet is not hit harder than a healthy one. What is left is one error that matches
//     [sandbox.ErrInfrastructure].
//   - A refusal (429, 503, or a connection that is not accepted) is no attempt: the call did not reach a sandbox. The node
//     rests for as long as it asked to, and the call goes elsewhere or waits.
//   - Nodes are chosen by least outstanding of two. Which two is a function of the call's key: nothing here draws random
//     numbers, and what a call returns does not depend on the node.
//   - Memory is bounded: requests and answers exist for calls on the wire only, Options.InFlight for each node; every other
//     outstanding call is a record of a few hundred bytes and its caller's goroutine, and their number is bounded too.
package client

// Package service serves sandboxed Python over HTTP: code-judge's interface unchanged, and a native one with typed outcomes.
//
// Invariants:
//
//   - A call ends once, in a typed outcome. A failure of the sandbox is tried again on another zygote, then told as such; it
//     never looks like something that the program did.
//   - Memory is bounded whatever clients send: bodies, waiting calls, running calls and kept results are charged to one
//     budget before they are held. Without room the answer is 429 with Retry-After, and the body is not read.
//   - Waiting and running are told apart: queue time ends where a run token is given.
//   - Run tokens belong to classes by time limit. A token serves its own class and shorter ones, so calls of 60 s can hold up
//     each other but never calls of 5 s. Within a class rollouts take turns.
//   - A call id is an idempotency key: while the call runs others join it, afterwards its result is kept for a while, and
//     another program under the same id is refused. A call nobody waits for any more is killed after a grace period.
//   - A draining service takes nothing new and says so at once; running calls end by themselves, then the process does.
//
// Not covered: authentication and encryption, which belong to the mesh or proxy in front, and routing, which is the client's
// (package client).
package service

// Package serve is the OpenAI-compatible HTTP face of an engine: chat completions with tools, completions with token ids, and
// what an operator needs to watch them.
//
// Invariants:
//   - Input is strict. A key or value that is not understood, or that asks for something that is not done here, is a 400 that
//     names it; nothing is ignored that would have changed the answer.
//   - An answer is a function of the request and the weights: with a seed, the same request gives the same ids whatever else
//     is served, streamed or not.
//   - Nobody but this package writes turn markers: messages cannot open or close a turn.
//   - A client that goes away takes its generations with it; every wait ends with the request's deadline.
//   - What does not fit the queue is refused at once (429), and a server that is about to end takes nothing new (503).
package serve

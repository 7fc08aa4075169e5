// Package agent runs one tool-using rollout: it asks the engine for a turn, runs the turn's tool calls, appends their results
// and asks again (rStar2-Agent §2.1), and keeps the rollout as a trajectory that can be stopped and continued anywhere.
//
// Invariants:
//
//   - Token in, token out. A trajectory is an append-only list of ids. Sampled ids are kept as the engine returned them, the
//     stop token included; text is decoded from them and never encoded again. Environment text is encoded with added tokens
//     off, so nothing a program prints can write a turn marker.
//   - Mask 1 is exactly what the model sampled. The prompt, the separator, tool responses and the re-opened assistant header
//     are mask 0, with log-prob and entropy 0. All four lists have one length; entropies are missing as a whole where the engine
//     measures none.
//   - A trajectory is one span of one weight version: a turn that was sampled with other weights is refused.
//   - Outcomes are typed. A failure of the engine, the sandbox or the verifier is an *InfraError of the run, never a tool
//     outcome and never a reward. What it interrupts goes on from its last recorded turn; what it makes impossible is Lost, which
//     is neither right nor wrong.
//   - Limits are logical (tokens, turns, calls). Time ends a wait or a run, not a trajectory.
//   - Trajectories run beside each other and wait for nothing but their own turn and their own calls.
//   - The same task over the same engine and tools gives the same canonical bytes, whatever runs beside it and wherever it was
//     interrupted. Timings are kept apart and enter no digest.
package agent

// Package rl holds the decisions of group-relative policy optimisation as pure functions: which rollouts of a group are
// kept, what advantage each gets, how token losses are weighted, what an evaluation says, and when a stage ends.
//
// It follows rStar2-Agent (arXiv 2508.20722), DeepSeekMath (2402.03300) and DAPO (2503.14476); each function names its
// equation. Invariants:
//
//   - No I/O, no clock, no global state. Randomness comes in as uniform(i) in [0,1), where i is the sample's own index,
//     so a choice never depends on the order in which rollouts finished.
//   - A group is one value. Every rule sees the whole group or drops the whole group, and says why.
//   - Rewards are finite; a reward above 0 is positive. Infrastructure failures never reach this package: the caller
//     leaves such rollouts out.
//   - Results are finite, and invariant under permutation of the input.
package rl

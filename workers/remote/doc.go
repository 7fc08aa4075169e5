// Package remote is an engine on the other side of HTTP: an OpenAI-compatible server that takes and returns token ids.
//
// It asks /v1/completions with the prompt in ids and takes the answer in ids with a log-prob each; text is only compared, never
// encoded. What differs from the engine of this program:
//
//	                       restar serve             vLLM                          SGLang
//	same request, same ids yes: seed and address    no: batches change bits       no: batches change bits
//	log-probs              as sampled from          of the untempered softmax,    of the tempered softmax, not cut by
//	                                                or as sampled from with       top-p and top-k, or of the untempered
//	                                                --logprobs-mode               one with
//	                                                processed_logprobs            SGLANG_RETURN_ORIGINAL_LOGPROB
//	entropies              yes                      no                            no
//	weights are named by   the served model's name  the served model's name       the served model's name
//	least version          this one                 0.10.2 (return_token_ids)     of July 2026 (return_token_ids)
//
// So a run on a foreign server keeps what it journalled and trains on it, but cannot be sampled again to the same bits, and its
// learner has other log-probs for the same weights: train with the truncated importance weight (rl.Loss.Importance). Rules that
// need entropies refuse its trajectories.
//
// Invariants:
//
//   - What would break token exactness is refused: an answer without ids, or with other prompt ids than were sent; log-probs that
//     are missing, or of another distribution than the one sampled from; ids beyond the vocabulary, or that the server reads as
//     other text; a stop token that was cut off; another model than asked for.
//   - Sampling settings are sent whole, neutral ones included: servers take missing ones from the model's generation config.
//   - Every wait ends with the caller's context or the attempt's time-out, and says which server it was for.
package remote

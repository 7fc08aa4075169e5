package cpu

import (
	"math"

	"github.com/restar-rl/restar/kernels"
)

const block = kernels.BlockTokens

// softmaxRows is one step of online softmax over a block of scores s[rows,block], of which row r has n[r] valid ones (any value below 0
// counts as 0, above block as block). It turns scores into e^(s-m'), 0 where invalid, and updates the running maximum m and
// sum l; alpha[r] = e^(m-m') is the factor for what was summed before.
func softmaxRows(s []float32, n []int32, m, l, alpha []float32) {
	for r := range n {
		row := s[r*block : (r+1)*block]
		valid := int(min(max(n[r], 0), block))
		top := m[r]
		for _, v := range row[:valid] {
			top = max(top, v)
		}
		alpha[r] = exp(m[r] - top)
		var sum [lanes]float32
		for i := range row {
			p := float32(0)
			if i < valid {
				p = exp(row[i] - top)
			}
			row[i] = p
			sum[i%lanes] += p
		}
		l[r] = fma(l[r], alpha[r], fold(&sum))
		m[r] = top
	}
}

// probRows turns scores s[rows,block] into probabilities p = e^(s-lse) and dp into p(dp-d), both 0 where invalid.
func probRows(s, dp []float32, n []int32, lse, d []float32) {
	for r := range n {
		valid := int(min(max(n[r], 0), block))
		for i := r * block; i < (r+1)*block; i++ {
			if i-r*block >= valid {
				s[i], dp[i] = 0, 0
				continue
			}
			s[i] = exp(s[i] - lse[r])
			dp[i] = s[i] * (dp[i] - d[r])
		}
	}
}

// rotate applies the half-split rotation to one head; sign -1 inverts it.
func rotate(out, x, cos, sin []float32, sign, factor float32) {
	h := len(cos)
	for i := range h {
		c, s := cos[i]*factor, float32(sin[i]*sign)*factor
		a, b := x[i], x[i+h]
		out[i] = fma(a, c, -float32(b*s))
		out[i+h] = fma(b, c, float32(a*s))
	}
}

// adamw follows Loshchilov and Hutter 2019, algorithm 2, with the step's constants already folded.
func adamw(w, m, v, g []float32, c *adamwConstants) {
	for i := range w {
		x := float32(g[i] * c.scale)
		m[i] = fma(x-m[i], c.oneMinusBeta1, m[i])
		v[i] = fma(float32(x*x), c.oneMinusBeta2, float32(v[i]*c.beta2))
		root := float32(math.Sqrt(float64(v[i])))
		w[i] = fma(-c.rate, m[i]/fma(root, c.rootScale, c.eps), float32(w[i]*c.decay))
	}
}

// adamwConstants are the numbers of a step, folded in float64: scale, 1-beta1, beta2, 1-beta2, rate = lr/(1-beta1^t),
// rootScale = 1/sqrt(1-beta2^t), eps, decay = 1-lr*wd. The assembly reads them by position.
type adamwConstants struct {
	scale, oneMinusBeta1, beta2, oneMinusBeta2, rate, rootScale, eps, decay float32
}

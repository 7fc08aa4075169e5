package verify

import (
	"testing"
)

func TestSympyProvesWhatTheNormalFormDoesNot(t *testing.T) {
	v := NewVerifier(pool(t), Options{})
	defer v.Close()
	pairs := []Pair{
		{`\sqrt{3+2\sqrt{2}}`, `1+\sqrt{2}`},
		{`\sin 2x`, `2\sin x\cos x`},
		{`\cos 2x`, `1-2\sin^2 x`},
		{`\frac{1}{\sqrt{x+1}}`, `\frac{\sqrt{x+1}}{x+1}`},
		{`e^{i\pi}+2`, `1`},
		{`\tan\frac{\pi}{8}`, `\sqrt{2}-1`},
		{`\cos\frac{\pi}{12}`, `\frac{\sqrt{6}+\sqrt{2}}{4}`},
		{`\{\sqrt{3+2\sqrt{2}}, 5\}`, `5, 1+\sqrt{2}`},
		{`\frac{\sin x}{1+\cos x}`, `\tan\frac{x}{2}`},
		{`\arctan 1`, `\frac{\pi}{4}`},
		{`\ln(x^2+2x+1)`, `\ln((x+1)^2)`},
		{`\sqrt[3]{2+\sqrt{5}}`, `\frac{1+\sqrt{5}}{2}`},
		{`\frac{x^3-1}{x-1}\sqrt{x^2+2x+1}`, `(x^2+x+1)\sqrt{(x+1)^2}`},
		{`\sin^4 x - \cos^4 x`, `-\cos 2x`},
		{`2^{\log_2 7 + x}`, `7 \cdot 2^x`},
	}
	for i, got := range v.JudgeAll(deadline(t), pairs) {
		t.Logf("%v %+v", pairs[i], got)
		if got.Outcome != Correct {
			t.Errorf("%v is %+v, want correct", pairs[i], got)
		}
		t.Log(Judge(pairs[i].Gold, pairs[i].Prediction))
	}
	t.Log(v.MedianCPU())
	for _, c := range v.costs {
		t.Log(c)
	}
}

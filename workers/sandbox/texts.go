package sandbox

import "cmp"

// Texts is what a failed program leaves on stderr, in place of a traceback. The marks {type}, {line}, {message} and {source}
// stand for the exception's class, the line of the program to blame, str(exception) and that line without its indentation.
type Texts struct {
	Located   string `json:"located"`   // an exception with a line of the program to blame
	Unlocated string `json:"unlocated"` // one without
	Traceback bool   `json:"traceback"` // CPython's own traceback instead of both
	NoEcho    bool   `json:"no_echo"`   // do not print the value of a last expression
}

// defaultTexts are those of rStar2-Agent's released executor (code_judge_utils.py, CodeExecutionError).
var defaultTexts = Texts{Located: "{type} at line {line}: {message}\n  {source}\n", Unlocated: "{type}: {message}\n"}

// DefaultTexts returns the texts of rStar2-Agent's released executor.
func DefaultTexts() Texts { return defaultTexts }

func (t Texts) withDefaults(d Texts) Texts {
	t.Located = cmp.Or(t.Located, d.Located)
	t.Unlocated = cmp.Or(t.Unlocated, d.Unlocated)
	return t
}

package problem

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/restar-rl/restar/kernels/philox"
)

// The mix of first programs in demonstrations. Demonstrations teach the protocol and not the mathematics: most programs
// are wrong, so that there is something left for reinforcement learning to find, and errors are of few kinds that all families
// share. A program that fails is the right one called in a wrong way, and its repair is right more often than a first program is:
// answers come out right in a clumsy way too, which an outcome reward alone does not tell from the clean one (rStar2-Agent §2.2).
const (
	rightShare     = 0.10
	offByOneShare  = 0.14 // the right program with 1 added or taken away
	wrongShare     = 0.46 // an expression that does not fit the question
	commonestShare = 0.4  // of wrong programs, those that make the family's commonest mistake; the others are any of its mistakes
	secondTryShare = 0.8  // of demonstrations whose first program fails, those that call once more
	repairShare    = 0.6  // of these calls, those that mend the program; the others are drawn like a first one that runs
)

// guess is the answer of a demonstration that gives up. No generated problem has it.
const guess = "0"

// demoStage keeps the addresses of demonstrations apart from those of the splits.
const demoStage = 16

// Demonstrations returns n conversations that show the protocol on problems of the Train split: a call of the tool named
// tool, its response, and the last output repeated as the answer. There is no reasoning in them. Responses have the form
// "status, stdout, stderr", without an execution time.
func Demonstrations(seed uint64, n int, tool string) ([]Demo, error) {
	all := families()
	demos := make([]Demo, 0, n)
	for i := range n {
		f := all[i%len(all)]
		q, ok := newQuestion(seed, i, demoStage, Train, f, nil)
		if !ok {
			return nil, fmt.Errorf("demonstrations: no numbers for problem %d of kind %s in %d draws", i, f.name, maxAttempts)
		}
		d := newDice(seed, philox.Address{Purpose: philox.Generate, Stage: demoStage, Ordinal: i})
		demos = append(demos, Demo{q.text, demoTurns(q, d, tool)})
	}
	return demos, nil
}

func demoTurns(q question, d *dice, tool string) []Turn {
	u := d.chance()
	if u < rightShare+offByOneShare+wrongShare {
		return finish(nil, tool, q.attempt(u, d))
	}
	code, message := q.failing(d)
	turns := []Turn{{RoleAssistant, callText(tool, code)}, {RoleTool, failureText(message)}}
	if d.chance() < secondTryShare {
		u := d.chance() * (rightShare + offByOneShare + wrongShare)
		if d.chance() < repairShare {
			u = 0 // the right program
		}
		return finish(turns, tool, q.attempt(u, d))
	}
	return append(turns, Turn{RoleAssistant, answerText(guess)})
}

// finish calls a program that works and answers with what it prints.
func finish(turns []Turn, tool string, p program) []Turn {
	return append(turns,
		Turn{RoleAssistant, callText(tool, p.code)},
		Turn{RoleTool, successText(p.stdout)},
		Turn{RoleAssistant, answerText(strings.TrimSuffix(p.stdout, "\n"))})
}

// attempt chooses a program that runs: u counts through the shares.
func (q question) attempt(u float64, d *dice) program {
	switch {
	case u < rightShare:
		return q.family.right.program(q.numbers, 0)
	case u < rightShare+offByOneShare/2:
		return q.family.right.program(q.numbers, 1)
	case u < rightShare+offByOneShare:
		return q.family.right.program(q.numbers, -1)
	}
	if d.chance() < commonestShare {
		return q.family.wrong[0].program(q.numbers, 0)
	}
	return q.family.wrong[d.below(len(q.family.wrong))].program(q.numbers, 0)
}

// failing chooses a program that does not run, and the error it ends with: "Type at line N: message" and the source line.
func (q question) failing(d *dice) (code, message string) {
	right := q.family.right
	expr, imports := fill(right.python, q.numbers), right.imports()
	line := 1 + strings.Count(imports, "\n")
	at := func(kind, text, source string) string {
		return fmt.Sprintf("%s at line %d: %s\n  %s\n", kind, line, text, source)
	}
	switch choice := d.below(3); {
	case choice == 0 && imports != "":
		line = 1
		return "print(" + expr + ")", at("NameError", "name 'math' is not defined", "print("+expr+")")
	case choice <= 1:
		return imports + "show(" + expr + ")", at("NameError", "name 'show' is not defined", "show("+expr+")")
	default:
		return imports + "print(len(" + expr + "))", at("TypeError", "object of type 'int' has no len()", "print(len("+expr+"))")
	}
}

// callText is an assistant turn that calls the tool, from after its opening <reason>.
func callText(tool, code string) string {
	return "</reason>\n<tool_call>\n{\"name\": " + quoted(tool) + ", \"arguments\": {\"code\": " + quoted(code) + ", \"input\": \"\"}}\n</tool_call>"
}

func answerText(answer string) string { return "</reason>\n<answer>\\boxed{" + answer + "}</answer>" }

func successText(stdout string) string { return "Tool call success\nstdout: " + stdout }

func failureText(stderr string) string { return "Tool call failure\nreason: \nstderr: " + stderr }

// quoted is s as a JSON string, without HTML escapes.
func quoted(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("problem: a string always encodes as JSON: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

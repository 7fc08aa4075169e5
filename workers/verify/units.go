package verify

import (
	"math/big"
	"slices"
	"strings"
)

// unitSpelling maps the spellings of a unit to the one that is compared.
var unitSpelling = spellings(
	"cm: centimeter centimeters centimetre centimetres cm", "m: meter meters metre metres m", "km: kilometer kilometers kilometre kilometres km",
	"mm: millimeter millimeters mm", "in: inch inches in", "ft: foot feet ft", "yd: yard yards yd", "mi: mile miles mi",
	"s: second seconds sec secs s", "min: minute minutes min mins", "h: hour hours hr hrs h", "day: day days", "week: week weeks",
	"month: month months", "year: year years yr yrs", "g: gram grams g", "kg: kilogram kilograms kg", "mg: milligram milligrams mg",
	"lb: pound pounds lb lbs", "oz: ounce ounces oz", "t: ton tons tonne tonnes", "L: liter liters litre litres", "mL: milliliter milliliters ml mL",
	"dollar: dollar dollars usd", "cent: cent cents", "unit: unit units", "degree: degree degrees deg", "radian: radian radians rad",
	"mph: mph", "km/h: kmh kph", "people: people", "point: points", "square unit: sq", "gallon: gallon gallons", "euro: euro euros",
)

func spellings(lines ...string) map[string]string {
	m := map[string]string{}
	for _, line := range lines {
		name, words, _ := strings.Cut(line, ": ")
		for _, w := range strings.Fields(words) {
			m[w] = name
		}
	}
	return m
}

// plainUnits are units that a plain word behind a number names; the rest of the spellings may as well be variables.
func plainUnit(w string) bool {
	return len(w) > 2 && unitSpelling[strings.ToLower(w)] != "" || slices.Contains([]string{"cm", "mm", "km", "kg", "ft", "yd", "mi", "lb", "oz", "hr", "mL", "ml"}, w)
}

// units takes words or units behind a value, with their powers and quotients, and notes them in it.
func (p *parser) units(value **node) bool {
	start := p.i
	words, ok := p.text()
	switch {
	case ok && multiply(value, &words):
		if words == "" {
			return true
		}
	case ok && (strings.ContainsAny(words, "0123456789=") || percentWord(words)):
		p.i = start
		return false
	case !ok && plainUnit(p.word()) && numeric(*value):
		words = p.word()
		p.i += len(words)
	case !ok && p.unitMetre(*value):
		words = "m"
		p.i++
	case !ok:
		return false
	}
	if qualified(words) {
		p.i = start
		return false
	}
	unit := spell(words) + p.unitPower()
	c := *(*value)
	c.unit = strings.TrimSpace(c.unit + " " + unit)
	*value = &c
	return true
}

// multipliers are words for powers of ten.
var multipliers = map[string]int{"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}

// multiply takes a multiplier off the words behind a value.
func multiply(value **node, words *string) bool {
	first, rest, _ := strings.Cut(strings.TrimSpace(*words), " ")
	power, ok := multipliers[strings.ToLower(first)]
	if ok {
		*value = product(*value, num(new(big.Rat).SetInt(pow10(power))))
		*words = strings.TrimSpace(rest)
	}
	return ok
}

// qualifiers are words that make another value of the one before them, or leave it open.
var qualifiers = []string{"or", "and", "not", "no", "more", "less", "fewer", "than", "least", "most", "but", "to", "until", "through", "except", "wrong", "false",
	"hundred", "thousand", "million", "billion", "trillion", "dozen", "squared", "cubed", "factorial", "half", "halves", "third", "thirds", "quarter",
	"quarters", "fifths", "tenth", "tenths", "times", "plus", "minus", "modulo", "mod", "base", "if", "when", "where", "negative", "pi", "root", "und", "ou", "et"}

// qualified reports whether words say something about the value that a unit does not.
func qualified(words string) bool {
	return slices.ContainsFunc(strings.Fields(words), func(w string) bool {
		return slices.Contains(qualifiers, strings.ToLower(strings.Trim(w, ".,;:!?()")))
	})
}

// unitMetre takes an m with a square or cube sign directly behind a number, as in 10m^2.
func (p *parser) unitMetre(value *node) bool {
	return value.kind == kNum && strings.HasPrefix(p.s[p.i:], "m^") && strings.TrimLeft(p.s[p.i:], "m^23 ") == ""
}

func percentWord(words string) bool {
	return slices.Contains([]string{"percent", "pct", "percentage", `\%`, "%"}, strings.ToLower(strings.TrimSpace(words)))
}

func (p *parser) unitPower() string {
	if p.peek() != '^' {
		return ""
	}
	p.i++
	return "^" + p.argumentText()
}

// spell writes a unit in the spelling that is compared.
func spell(words string) string {
	fields := strings.Fields(strings.Trim(words, " .,"))
	if len(fields) == 2 && (fields[0] == "square" || fields[0] == "sq" || fields[0] == "sq.") {
		return spell(fields[1]) + "^2"
	}
	if len(fields) == 2 && fields[0] == "cubic" {
		return spell(fields[1]) + "^3"
	}
	for i, f := range fields {
		if name, ok := unitSpelling[f]; ok {
			fields[i] = name
		} else if name, ok := unitSpelling[strings.ToLower(f)]; ok {
			fields[i] = name
		}
	}
	return strings.Join(fields, " ")
}

// numeric reports whether a value has no variables.
func numeric(n *node) bool {
	free := map[string]bool{}
	n.symbols(free)
	return len(free) == 0
}

// unitSize holds units with the factor to the base unit of their dimension.
var unitSize = map[string]struct {
	dimension string
	size      *big.Rat
}{
	"mm": {"length", big.NewRat(1, 1000)}, "cm": {"length", big.NewRat(1, 100)}, "m": {"length", big.NewRat(1, 1)}, "km": {"length", big.NewRat(1000, 1)},
	"in": {"length", big.NewRat(254, 10000)}, "ft": {"length", big.NewRat(3048, 10000)}, "yd": {"length", big.NewRat(9144, 10000)},
	"mi": {"length", big.NewRat(1609344, 1000)},
	"s":  {"time", big.NewRat(1, 1)}, "min": {"time", big.NewRat(60, 1)}, "h": {"time", big.NewRat(3600, 1)}, "day": {"time", big.NewRat(86400, 1)},
	"week": {"time", big.NewRat(604800, 1)},
	"mg":   {"mass", big.NewRat(1, 1000)}, "g": {"mass", big.NewRat(1, 1)}, "kg": {"mass", big.NewRat(1000, 1)}, "t": {"mass", big.NewRat(1000000, 1)},
	"mL": {"volume", big.NewRat(1, 1000)}, "L": {"volume", big.NewRat(1, 1)},
	"cent": {"money", big.NewRat(1, 100)}, "dollar": {"money", big.NewRat(1, 1)},
}

// unitFactor returns what a value in unit from has to be multiplied by to be in unit to. A unit that is missing or not known
// does not count; ok is false where both are known and measure different things.
func unitFactor(from, to string) (factor *big.Rat, ok bool) {
	a, known := unitSize[from]
	b, alsoKnown := unitSize[to]
	if !known || !alsoKnown {
		return big.NewRat(1, 1), true
	}
	return new(big.Rat).Quo(a.size, b.size), a.dimension == b.dimension
}

package recipe

// ValidName tells whether s can name a run or a stage: lower-case letters, digits and hyphens, at most 40, and a letter or
// digit first.
func ValidName(s string) bool { return nameForm.MatchString(s) }

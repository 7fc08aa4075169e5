package sandbox

// Validate names the first limit that is out of range, with the range. Every field counts: fill in the defaults first.
func (l Limits) Validate() error { return l.validate() }

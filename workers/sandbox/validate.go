package sandbox

// Validate names the first limit that is out of range, with the range. Every field counts: fill in the defaults first.
func (l Limits) Validate() error { return l.validate() }

// WithDefaults fills the zero fields of l from d.
func (l Limits) WithDefaults(d Limits) Limits { return l.withDefaults(d) }

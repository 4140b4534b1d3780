package dataset

// Error means that a data set or its tokenizer cannot be used.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

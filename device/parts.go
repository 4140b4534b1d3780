package device

// A Place gives the position of runs of rows in a matrix: run i begins at row Row + i·Step, and its columns begin at
// Col.
type Place struct{ Row, Step, Col int }

// Runs are the part of a matrix that CopyRuns copies: Count runs of Rows rows and Cols columns.
type Runs struct {
	Count, Rows, Cols int
	To, From          Place // in dst and src
	Add               bool  // add to dst instead of overwriting it
}

// A Merge says which rows MergeAttention merges: Count runs of Rows rows. To and From have no columns.
type Merge struct {
	Count, Rows int
	To, From    Place // in out and lse, and in part and partLSE
	// Shift [H], unless nil, is added to partLSE first.
	Shift []float64
	// Fresh means that these rows of out and lse hold nothing yet, and are overwritten by those of part.
	Fresh bool
}

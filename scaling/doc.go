// Package scaling predicts the loss of a language model from its size and its training tokens, with laws fitted to the
// losses of smaller models.
//
//   - law.go: the law L(N, D), the compute-optimal model of a FLOP budget, and the inverse questions
//   - constants.go: laws from the literature
//   - points.go: losses of trained models, and the CSV that holds them
//   - fit.go, search.go, linear.go: the law that fits points best, by variable projection
//   - bootstrap.go: percentile intervals of a fit
//   - collinear.go: points whose tokens follow from their sizes, which no law can be fitted to
//   - heldback.go: how a law predicts points that were left out of its fit
//   - envelope.go, isoflop.go: the two older ways to find compute-optimal models, with their bias
//   - repetition.go: data that is read more than once
//   - inference.go: models that are trained once and used often
//   - question.go: what is asked of a law
//   - study.go: a fit as a file
//
// N is the number of parameters, D the number of training tokens, C the number of floating-point operations (FLOPs).
// Losses are in nats per token. N counts the parameters of matrix multiplications with the output head and without the
// lookup embedding, so that training takes 6·N·D FLOPs.
//
// It imports no other package of anneal but internal/units. Start reading at law.go.
package scaling

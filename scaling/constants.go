package scaling

// Published laws of English web text. Their N counts all parameters, and their loss is that of the authors' tokenizer:
// for other text use the exponents and ratios, and fit the losses.
var (
	// Besiroglu is the fit of Besiroglu et al. 2024 (arXiv 2404.10102) to the 240 models of Hoffmann's figure 4. It is
	// the default: it gives about 20 tokens per parameter at Chinchilla's compute, like Hoffmann's other two
	// approaches and Chinchilla itself.
	Besiroglu = Law{E: 1.8172, A: 482.01, B: 2085.43, Alpha: 0.3478, Beta: 0.3658}

	// Hoffmann is the law as Hoffmann et al. 2022 (arXiv 2203.15556) print it. It contradicts their own model: it asks
	// for 93 tokens per parameter at Chinchilla's compute. Their optimiser used the mean of the losses instead of the
	// sum and stopped early, and rounding the exponents to two digits moved the optimum further.
	Hoffmann = Law{E: 1.69, A: 406.4, B: 410.7, Alpha: 0.34, Beta: 0.28}
)

package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"anneal/internal/units"
	"anneal/precision"
)

// Key says what one config key is.
type Key struct {
	Name    string   `json:"key"`
	Type    string   `json:"type"`
	Default string   `json:"default"`
	Unit    string   `json:"unit,omitempty"`
	Values  []string `json:"values,omitempty"` // for names: all that are known
	Doc     string   `json:"doc"`
	Rule    string   `json:"rule,omitempty"` // how the value is derived when it is left out
	index   []int
	amount  bool // steps that may be given as a percentage of the run or in tokens
	list    bool // texts with commas between them, which a file may give as a list
}

// notes holds what reflection cannot tell. A test keeps it in step with Config.
var notes = map[string]Key{
	"seed":      {Doc: "Fixes initial weights, the order of the data and samples: the same seed gives the same bits."},
	"device":    {Values: []string{"cpu", "cuda"}, Doc: "What computes. cuda: one NVIDIA GPU of the Ampere generation or later, the first that CUDA_VISIBLE_DEVICES leaves, in a binary that was built with `go build -tags cuda ./cmd/anneal`. Results of the two are equally good, but differ in their last bits; a run can go on with the other."},
	"precision": {Values: precision.Names(), Doc: "Number formats of training; `anneal explain precision` shows what each policy stores in which. bf16: matrix products read BF16 and sum in FP32; masters, gradients, norms, softmax, loss and optimizer stay FP32. fp64 is a slow reference for tiny models."},
	"threads":   {Unit: "threads", Doc: "Worker threads; 0 takes every core the process may use. The result does not depend on it."},

	"model.family":           {Values: familyNames(), Doc: "llama: RMSNorm, rotary positions, grouped-query attention, SwiGLU, no biases. gpt2: LayerNorm, learned positions, GELU, biases. anneal: a recipe for small models, which adds squared ReLU, QK-norm, outputs that start at zero, value embeddings, a skip from the embedding, capped logits and windows; each has a key."},
	"model.layers":           {Unit: "blocks", Doc: "Transformer blocks."},
	"model.dim":              {Doc: "Width of the residual stream."},
	"model.heads":            {Unit: "heads", Doc: "Query heads. Divides model.dim unless model.head_dim is given."},
	"model.kv_heads":         {Unit: "heads", Doc: "Key and value heads; fewer than heads is grouped-query attention. Divides model.heads.", Rule: "kv_heads = heads"},
	"model.head_dim":         {Doc: "Size of one head. Even with rotary positions, which turn pairs.", Rule: "head_dim = dim / heads"},
	"model.ffn":              {Doc: "Hidden width of the feed-forward layer.", Rule: "ffn = 8/3 · dim, rounded up to a multiple of 64; 4 · dim with gelu or relu2"},
	"model.context":          {Unit: "tokens", Doc: "Length of a training sequence and the most that generation looks back on."},
	"model.vocab":            {Unit: "tokens", Doc: "Size of the vocabulary.", Rule: "vocab = the vocabulary of the data set's tokenizer"},
	"model.tie_embeddings":   {Doc: "The output head shares the embedding table."},
	"model.qk_norm":          {Doc: "RMSNorm on each query and key head before the rotary positions; steadies high learning rates."},
	"model.norm_eps":         {Doc: "Added to the mean square inside RMSNorm, and to the variance inside LayerNorm."},
	"model.attention":        {list: true, Doc: attentionDoc, Rule: "attention = with model.family = anneal three layers with windows of context / 4 in turn with a full one, else full"},
	"model.logit_softcap":    {Doc: "Caps the logits z of the head smoothly, c·tanh(z/c), in training, evaluation and generation (Gemma 2: 30); 0 does not. Hugging Face's Llama format has no place for it."},
	"model.init_std":         {Doc: "Standard deviation of the initial embedding and head, and with model.init=gpt2 of the matrices. model.init=small has its own."},
	"model.init":             {Values: []string{"gpt2", "he", "xavier", "small"}, Doc: "How matrices start. gpt2: init_std, and init_std / √(2·layers) where they write to the residual stream; he: √(2 / fan_in); xavier: √(2 / (fan_in + fan_out)); small: √(2 / (5·dim)), and 2 / (layers·√dim) where they write to the stream, as GPT-NeoX."},
	"model.zero_init":        {Values: []string{"none", "residual", "head", "both"}, Doc: "What starts at zero: residual is the matrices that write to the residual stream, so that every block starts as the identity; head the output head, if it is not tied."},
	"model.activation":       {Values: []string{"swiglu", "gelu", "relu2"}, Doc: "The feed-forward layer. swiglu (llama, anneal): silu(gate)·up, three matrices; gelu (gpt2) and relu2 (anneal), max(up, 0)²: two."},
	"model.value_embeddings": {Values: []string{"none", "alternate", "all"}, Doc: "Of anneal: layers that add a row of a table of their own, [vocab, kv_heads·head_dim], to the values of each token: every second and the last, or all. No FLOPs."},
	"model.x0_skip":          {Doc: "Of anneal: every layer mixes the residual stream with the embedding, by two learned factors."},
	"model.dropout":          {Doc: "Probability that training drops an element of the embedding or of a branch's output before it is added to the residual stream; the others are scaled up. 0 drops none. For several epochs over little data: 0.1."},
	"model.stochastic_depth": {Doc: "Probability that training drops a whole branch of the last layer, for one micro-batch; it rises linearly with the layer. What is dropped is not computed, what stays is scaled up. 0 drops none; 0.1 to 0.2 are usual."},

	"model.positions":             {list: true, Doc: "How attention knows where tokens stand: one scheme, or a list that the layers take in turn, such as [rope, rope, rope, none]. rope: queries and keys turn with the position. alibi: scores fall with the distance; a model reads rows longer than those of training. learned: a vector for each position is added to the embedding, in the whole model; none beyond model.context. none: order comes from causality alone."},
	"model.rope_theta":            {Doc: "Base wavelength of the rotary positions."},
	"model.rope_scaling":          {Doc: "Slows rotary positions, so that rows are read that are longer than those of the first training: KIND:FACTOR, the factor being how many times as long. yarn:4 is the best without more training; linear:4, ntk:4 and llama3:8 (of Llama 3.1) are others. Options follow: yarn:4:fast=32:slow=1:attention=1.14, llama3:8:low=1:high=4."},
	"model.rope_original_context": {Unit: "tokens", Doc: "With model.rope_scaling = yarn or llama3, the context of the first training.", Rule: "rope_original_context = context / the factor of rope_scaling"},
	"model.rope_layout":           {Values: []string{"half", "interleaved"}, Doc: "Which elements of a head rotary positions pair: i with i + head_dim/2, as Hugging Face's models, or 2i with 2i + 1, as GPT-J and Meta's own Llama. The same model with rows of the query and key weights permuted."},

	"model.mup":               {Doc: "Maximal update parametrisation: initial weights, learning rates, decays, the scale of attention's scores and of the logits follow the width, so that the learning rate tuned on a narrow model holds for a wide one. docs/mup.md shows how to use and check it."},
	"model.mup_base_dim":      {Doc: "With model.mup, the model.dim of the model that optimizer.lr and model.init_std were tuned on. With this width muP changes nothing."},
	"model.mup_base_head_dim": {Doc: "With model.mup, the size of a head of the base model.", Rule: "mup_base_head_dim = head_dim"},
	"model.mup_base_ffn":      {Doc: "With model.mup, the hidden width of the feed-forward layer of the base model.", Rule: "mup_base_ffn = ffn as it is derived from mup_base_dim, if ffn is so from dim; else ffn · mup_base_dim / dim"},
	"model.mup_base_layers":   {Unit: "blocks", Doc: "With model.mup, the model.layers of the base model: what each block adds then follows the depth (CompleteP), so that the rate holds for deeper models, too. 0 leaves depth alone."},
	"model.mup_input_scale":   {Doc: "With model.mup, what the embedding is multiplied by; the same at every width."},
	"model.mup_output_scale":  {Doc: "With model.mup, what the logits are multiplied by, before the width's own factor mup_base_dim / dim."},

	"init.from":      {Doc: "Weights to start from in place of random ones: the directory of a run, or of a model in the layout of Hugging Face. The shape of the model is theirs; the optimizer is new, and the schedule begins at step 0. `anneal train --init-from DIR` sets it. A resume reads the run's own checkpoints, never this directory."},
	"init.step":      {Doc: "Which checkpoint of the run in init.from.", Rule: "step = the newest checkpoint"},
	"init.weights":   {Doc: "SHA-256 of the weights in init.from, as `anneal ckpt hash` prints it; if it is given, other weights are refused.", Rule: "weights = the hash of what was read"},
	"init.tokenizer": {Values: []string{"related", "any"}, Doc: "Which tokenizer the data may have. related: that of the weights, or one with more or fewer merges and special tokens. any: another, too. Rows of the embedding and the head are carried over by token; a new token starts as the mean of the rows of the tokens that the old tokenizer cuts its text into, or of all carried rows."},

	"data.path":          {Doc: "Directory made by `anneal data build`. A relative path is taken from the working directory."},
	"data.mix":           {list: true, Doc: "Several data sets in the place of data.path, mixed by data.weights: a list of NAME=DIR, such as web=data/web, code=data/code. All have one tokenizer. Each is read in an order of its own, epoch after epoch."},
	"data.weights":       {list: true, Doc: "Shares of the sources of data.mix in the rows that are trained on. natural: by their sizes, so that all have as many epochs; temperature:T: by size^(1/T), more even the higher T is; unimax:N: evenly, but no source for more than N epochs; or as they are, web=0.7 code=0.3, in any unit. Changes follow in a list: WEIGHTS from STEP jumps, WEIGHTS from STEP to STEP moves along a line, such as natural, web=1 best=3 from 80% to 85%. Steps are also parts of the run or amounts of tokens. `anneal data mix` shows what a method gives."},
	"data.packing":       {Values: []string{"concat", "best_fit", "pad"}, Doc: "How documents become rows of model.context tokens: concat cuts the stream of all of them every so many tokens; best_fit cuts only what is longer than a row, and fills rows with what fits best; pad gives each document a row, and leaves out what goes beyond it. What stays free is padding that is not trained on. Validation is always concat, so that its bits per byte compare. `anneal data inspect` shows what each would do."},
	"data.document_mask": {Doc: "Tokens attend within their own document only, also where several are packed into one sequence."},
	"data.order":         {Doc: "Order by scores of the documents, which `anneal data score` makes; without it, random. first SCORES over LENGTH draws the first samples from the easiest rows, from a growing share of them; last SCORES over LENGTH holds the best back for the end of the run. Such as first compression over 15%, last quality over 10%. Options: first high compression over 15% from 10% by root (or linear, step); last high quality over 10% of 20% since 500 steps: low or high is the end of the scores that is meant (easy is low, but of flesch high), of the share of rows that counts as best. Each epoch still has every row once."},
	"data.skip":          {Unit: "samples", Doc: "Samples that training leaves out: ranges FROM:TO of its order, counted from 0, TO exclusive, with commas between them. `anneal rewind` writes it; a run can only leave out what is yet to come."},

	"train.steps":             {Unit: "steps", Doc: "Optimizer steps of the whole run; the schedule is stretched over them."},
	"train.minutes":           {Unit: "minutes", Doc: "Stop after this long, if that comes before train.steps; 0 sets no limit."},
	"train.batch_tokens":      {Unit: "tokens", Doc: "Tokens in one optimizer step, over all micro-batches. A multiple of model.context."},
	"train.micro_batch":       {Unit: "sequences", Doc: "Sequences in one forward pass. More need more memory and give the same mathematics.", Rule: "micro_batch = the largest divisor of batch_tokens / context with at most 4096 tokens"},
	"train.batch_ramp":        {Doc: "Smaller steps at the beginning: FROM over TOKENS grows from so many tokens a step to batch_tokens along a line, such as 4096 over 2M tokens; SIZE until TOKENS, … goes in stages. Micro-batches stay, steps take more of them. Schedules then count tokens instead of steps."},
	"train.batch_ramp_lr":     {Values: []string{"none", "sqrt", "linear"}, Doc: "Learning rate of a smaller step of train.batch_ramp: times √(step/batch_tokens), times step/batch_tokens, or as it is."},
	"train.length_warmup":     {Doc: "Shorter sequences at the beginning: FROM over LENGTH, such as 64 over 10%, 64 over 500 steps or 64 over 2M tokens. Samples are cut into equal pieces, so a step has the same tokens. Lengths are multiples of 8 that divide model.context."},
	"train.noise_scale_every": {Unit: "steps", Doc: "Estimate the gradient noise scale, the batch beyond which more tokens a step help little, this often; 0 never. A step then needs two micro-batches or more."},
	"train.clip":              {Doc: "Largest global L2 norm of the gradient; larger ones are scaled down to it. 0 never clips."},
	"train.z_loss":            {Doc: "Coefficient of log²Z, the square of the log of the softmax's sum, added to what is minimised; keeps logits from drifting (PaLM: 1e-4). Reported apart as z_loss; 0 is off."},
	"train.eval_every":        {Unit: "steps", Doc: "Evaluate on held-out documents this often; 0 only at the end."},
	"train.eval_tokens":       {Unit: "tokens", Doc: "Held-out tokens in one evaluation; 0 takes all."},
	"train.log_every":         {Unit: "steps", Doc: "A line of progress this often, where there is no terminal to rewrite one on."},

	"optimizer.name":             {Values: optimizerNames(), Doc: "The update rule. adamw: Adam with decoupled weight decay; adam8bit: adamw with the state of large matrices in 8 bits; adam: with decay in the gradient; sgd: gradient descent, with momentum if given; lion: signs of the momentum, half the memory; ademamix: a second, slow momentum; adafactor: rows and columns of the second moment, next to no memory; muon: orthogonal steps of hidden matrices, and adamw for the rest; sophia: steps by estimated curvature, clipped."},
	"optimizer.lr":               {Doc: "Peak learning rate."},
	"optimizer.momentum":         {Doc: "Of sgd and muon: decay of the running sum of gradients; sgd keeps none with 0."},
	"optimizer.dampening":        {Doc: "Of sgd: part of the gradient that is kept out of the momentum."},
	"optimizer.nesterov":         {Doc: "Of sgd: step from where the momentum will have led."},
	"optimizer.beta3":            {Doc: "Of ademamix: decay of the slow first moment."},
	"optimizer.alpha":            {Doc: "Of ademamix: weight of the slow first moment in the update."},
	"optimizer.ramp":             {Unit: "steps", Doc: "Of ademamix: updates over which alpha and beta3 rise to their values; 1 starts with them.", Rule: "ramp = train.steps"},
	"optimizer.variant":          {Values: []string{"t5", "palm"}, Doc: "Of adafactor: which. t5: factored, no momentum. palm: the second moment whole, momentum, decay by the square of the rate."},
	"optimizer.relative_step":    {Doc: "Of adafactor: the rate is at most 1/√update."},
	"optimizer.scale_parameter":  {Doc: "Of adafactor: the rate is relative to the size of the weights, their root mean square."},
	"optimizer.muon_scale":       {Values: []string{"match_rms", "jordan", "spectral_mup"}, Doc: "Of muon: what the rate means. match_rms: updates have the size of AdamW's, whose rate and decay serve. jordan: it is the spectral norm of an update, times √(rows/cols) for tall matrices. spectral_mup: that times √(rows/cols), for model.mup."},
	"optimizer.newton_schulz":    {Values: []string{"polar_express", "jordan"}, Doc: "Of muon: coefficients of its five Newton–Schulz steps. polar_express: one polynomial per step, closer to orthogonal at the same cost. jordan: the original."},
	"optimizer.normuon":          {Doc: "Of muon: even out the rows of updates by a running mean of their squares, with beta2."},
	"optimizer.adamw_lr":         {Doc: "Of muon: peak learning rate of what it leaves to AdamW, which is embeddings, head and norms.", Rule: "adamw_lr = lr with muon_scale = match_rms, else lr / 20"},
	"optimizer.rho":              {Doc: "Of sophia: how much the curvature counts; the larger, the fewer weights are clipped. win_rate in metrics.jsonl should be 0.1 to 0.5."},
	"optimizer.hessian_every":    {Unit: "updates", Doc: "Of sophia: updates from one estimate of the curvature to the next; each costs a forward and a backward pass."},
	"optimizer.beta1":            {Doc: "Decay of the first moment."},
	"optimizer.beta2":            {Doc: "Decay of the second moment."},
	"optimizer.eps":              {Doc: "Added to the root of the second moment."},
	"optimizer.weight_decay":     {Doc: "Decay of matrices and the head: w ← w·(1 − lr·decay); in adam and sgd it is part of the gradient instead."},
	"optimizer.cautious_decay":   {Doc: "Decay a weight only where its update has the same sign, so that decay never works against the loss."},
	"optimizer.decay_embeddings": {Doc: "Decay the embedding table too; a head that is tied to it counts as one."},

	"optimizer.groups.matrix.lr_ratio":        {Doc: "Learning rate of hidden weights, as a multiple of optimizer.lr; 0 freezes them."},
	"optimizer.groups.matrix.weight_decay":    {Doc: "Decay of hidden weights.", Rule: "weight_decay = optimizer.weight_decay"},
	"optimizer.groups.embedding.lr_ratio":     {Doc: "Learning rate of the embedding table, and of tables of positions and values, as a multiple of optimizer.lr."},
	"optimizer.groups.embedding.weight_decay": {Doc: "Decay of the embedding table, and of tables of positions and values.", Rule: "weight_decay = optimizer.weight_decay with optimizer.decay_embeddings, else 0"},
	"optimizer.groups.head.lr_ratio":          {Doc: "Learning rate of an output head of its own, as a multiple of optimizer.lr."},
	"optimizer.groups.head.weight_decay":      {Doc: "Decay of an output head of its own.", Rule: "weight_decay = optimizer.weight_decay"},
	"optimizer.groups.norm.lr_ratio":          {Doc: "Learning rate of the norms' gains and of the factors of model.x0_skip and model.value_embeddings, as a multiple of optimizer.lr."},
	"optimizer.groups.norm.weight_decay":      {Doc: "Decay of the norms' gains and of those factors.", Rule: "weight_decay = 0"},
	"optimizer.groups.bias.lr_ratio":          {Doc: "Learning rate of biases (gpt2, linear:gated), as a multiple of optimizer.lr."},
	"optimizer.groups.bias.weight_decay":      {Doc: "Decay of biases.", Rule: "weight_decay = 0"},

	"schedule.name":           {Values: []string{"cosine", "wsd", "wsds", "linear", "inverse_sqrt", "constant"}, Doc: "Learning rate after the warmup. cosine and linear fall over the whole run; wsd (warmup, stable, decay) stays and falls at the end; wsds does so several times, see schedule.branches; inverse_sqrt falls as √(warmup/t); constant stays."},
	"schedule.warmup":         {Unit: "steps", amount: true, Doc: "Steps over which the learning rate rises linearly, lr·t/warmup from t = 1; 0 and 1 are no warmup. Also as 2%, a part of train.steps, or as 1M tokens, rounded up to whole steps.", Rule: "warmup = 1 % of the steps, at least 1 and at most 2000"},
	"schedule.final_ratio":    {Doc: "Learning rate of the last step as a fraction of the peak, in cosine, linear, wsd and wsds; in inverse_sqrt the least.", Rule: finalRatioRule},
	"schedule.decay_fraction": {Doc: "Part of the run in which wsd decays; in wsds, of the run up to the end of each branch."},
	"schedule.decay_shape":    {Values: []string{"linear", "sqrt", "cosine", "exponential"}, Doc: "How wsd and wsds decay while x goes from 0 to 1: linear is 1 − x, sqrt is 1 − √x, cosine is ½(1 + cos πx), exponential is 2·½ˣ − 1."},
	"schedule.branches":       {Doc: "Where wsds has decayed and goes on at the peak: steps, parts of the run or tokens, such as 25%, 50%. The end of the run is the last branch.", Rule: branchesRule},

	"loss_scale.dynamic":  {Doc: "fp16: halve the loss scale when a gradient overflows, and skip that update; double it after loss_scale.interval updates without. false keeps loss_scale.init."},
	"loss_scale.init":     {Doc: "fp16: what the loss is multiplied by at first, above 0; a power of two rounds nothing."},
	"loss_scale.interval": {Unit: "updates", Doc: "fp16: updates without overflow before the loss scale is doubled."},
	"loss_scale.floor":    {Doc: "fp16: the least that the loss scale is halved to; overflows there count as skips of the guard (guard.max_skips)."},

	"fp8.scaling": {Values: []string{"current", "delayed"}, Doc: "fp8: what the scale of an operand is found from: its own largest magnitude, or that of the last steps."},
	"fp8.history": {Unit: "steps", Doc: "fp8 with delayed scaling: steps whose largest magnitude counts."},
	"fp8.margin":  {Doc: "fp8 with delayed scaling: powers of two that scales stay below what the history allows."},

	"checkpoint.every": {Unit: "steps", Doc: "Save this often; 0 only at the end and when stopped."},
	"checkpoint.keep":  {Unit: "checkpoints", Doc: "Newest checkpoints that stay on disk; at least 2, so that a damaged one has a predecessor."},

	"guard.max_skips": {Unit: "steps", Doc: "Updates skipped in a row (loss or gradient not finite, or a spike) before the run stops."},
	"guard.spike_z":   {Unit: "standard deviations", Doc: "Skip an update whose loss or gradient norm lies this far above the mean of the last accepted ones (OLMo: 6); 0 turns the check off."},
	"guard.window":    {Unit: "steps", Doc: "Accepted steps that spike_z compares with; it judges from half of them on."},

	"average.ema": {Doc: "Decay of an exponential moving average of the weights, evaluated beside them, and used by `--weights ema`: 0.999 looks back on about a thousand updates. 4 bytes a parameter; 0 keeps none."},

	"memory.recompute": {Doc: "Activations that backward computes again instead of keeping them; gradients keep their bits. none; every_layer keeps the input of each layer; every:N of each N layers; sqrt of each √layers; selective runs only attention again; budget:SIZE, such as budget:1.5GiB, runs as little again as makes the activations fit."},
}

var (
	allKeys  = buildKeys()
	keyIndex = func() map[string]int {
		m := make(map[string]int, len(allKeys))
		for i, k := range allKeys {
			m[k.Name] = i
		}
		return m
	}()
)

// Keys returns every key in the order of the file.
func Keys() []Key { return append([]Key(nil), allKeys...) }

// Find returns the keys with a name, or whose names end in it: lr finds optimizer.lr.
func Find(name string) (keys []string) {
	for _, k := range allKeys {
		if k.Name == name || name != "" && strings.HasSuffix(k.Name, "."+name) {
			keys = append(keys, k.Name)
		}
	}
	return keys
}

// Explain returns what a key is, or an error that names the nearest one.
func Explain(name string) (Key, error) {
	if i, ok := keyIndex[name]; ok {
		return allKeys[i], nil
	}
	return Key{}, &Error{[]Problem{unknownKey(name, "")}}
}

func buildKeys() []Key {
	var keys []Key
	def := reflect.ValueOf(Default()).Elem()
	var walk func(v reflect.Value, prefix string, index []int)
	walk = func(v reflect.Value, prefix string, index []int) {
		for i := range v.NumField() {
			tag, ok := v.Type().Field(i).Tag.Lookup("yaml")
			if !ok {
				continue
			}
			name, at := prefix+tag, append(append([]int(nil), index...), i)
			if v.Field(i).Kind() == reflect.Struct {
				walk(v.Field(i), name+".", at)
				continue
			}
			k := notes[name]
			if key, ok := strings.CutPrefix(name, "optimizer."); ok && k.Rule == "" {
				k.Rule = optimizerRule(key)
			}
			if k.Rule == "" {
				k.Rule = familyRule(name, format(v.Field(i)))
			}
			k.Name, k.index, k.Type = name, at, typeName(v.Field(i).Kind())
			k.Default = format(v.Field(i))
			if k.amount {
				k.Type = "integer, percentage or amount of tokens"
			}
			if k.list {
				k.Type = listType
			}
			if k.Unit == "minutes" {
				k.Type = durationType
			}
			if k.Rule != "" {
				k.Default = "derived"
			}
			keys = append(keys, k)
		}
	}
	walk(def, "", nil)
	return keys
}

// durationType is the type of a key in minutes, which may be given in other units.
const durationType = "number of minutes or duration such as 90s or 1h30m"

// listType is the type of a key that a file may give as a list.
const listType = "text or a list of texts"

func typeName(k reflect.Kind) string {
	switch k {
	case reflect.Int:
		return "integer"
	case reflect.Uint64:
		return "non-negative integer"
	case reflect.Float64:
		return "number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	}
	panic(fmt.Sprintf("config: a field of kind %v has no place in a config file", k))
}

// format writes a value as the config file does.
func format(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case reflect.String:
		return v.String()
	}
	return fmt.Sprint(v.Interface())
}

// set parses text into the field of key; the error says what was expected.
func (c *Config) set(k Key, text string, from Origin) error {
	v := reflect.ValueOf(c).Elem().FieldByIndex(k.index)
	wrong := fmt.Errorf("%s = %q is not %s", k.Name, text, article(k.Type))
	digits := strings.ReplaceAll(text, "_", "")
	if from.Rule == "" {
		delete(c.amounts, k.Name) // an earlier text gives way
	}
	if k.amount {
		a, err := parseAmount(text)
		if err != nil {
			return fmt.Errorf("%s = %w", k.Name, err)
		}
		if a.unit == "steps" {
			digits = strings.TrimSpace(strings.TrimSuffix(digits, "steps"))
		} else {
			if c.amounts == nil {
				c.amounts = map[string]string{}
			}
			c.amounts[k.Name] = text
			digits = "0"
		}
	}
	switch v.Kind() {
	case reflect.Int:
		n, err := units.Int(digits)
		if err != nil {
			return wrong
		}
		v.SetInt(n)
	case reflect.Uint64:
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			return wrong
		}
		v.SetUint(n)
	case reflect.Float64:
		f, err := strconv.ParseFloat(digits, 64)
		if d, also := units.Duration(text, time.Minute); err != nil && also == nil && k.Type == durationType {
			f, err = d.Minutes(), nil
		}
		if err != nil || f-f != 0 { // the difference is NaN for infinities and for NaN
			return wrong
		}
		v.SetFloat(f)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return wrong
		}
		v.SetBool(text == "true")
	case reflect.String:
		v.SetString(text)
	}
	if c.origins == nil {
		c.origins = map[string]Origin{}
	}
	c.origins[k.Name] = from
	return nil
}

func article(typ string) string {
	switch typ {
	case "integer":
		return "an integer, such as 2000, 2K or 64Ki"
	case "true or false", listType:
		return typ
	}
	return "a " + typ
}

// value writes the value of a key as the config file does.
func (c *Config) value(k Key) string {
	return format(reflect.ValueOf(c).Elem().FieldByIndex(k.index))
}

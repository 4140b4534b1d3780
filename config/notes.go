package config

import "anneal/precision"

// notes holds what reflection does not know about keys. A test keeps it in step with Config. Lists of keys show only
// the first sentence of a Doc; a separate line explains a value.
var notes = map[string]Key{
	"seed": {Doc: "Seed of the initial weights, the data order, dropout and samples. The same seed gives the same " +
		"bits."},
	"device": {Values: []string{"cpu", "cuda"}, Doc: "The device that computes.\n" +
		"cpu: this machine's processor.\n" +
		"cuda: an NVIDIA GPU (Ampere or later) for each rank, in the order of CUDA_VISIBLE_DEVICES. Needs a " +
		"binary built with `go build -tags cuda ./cmd/anneal`.\n" +
		"The two differ in the last bits of their results. A run can be resumed on the other device."},
	"precision": {Values: precision.Names(), Doc: "Number formats of training. `anneal explain precision` " +
		"describes each policy. bf16 reads BF16 in matrix products and sums in FP32; " +
		"master weights, gradients, norms, softmax, loss and optimizer stay in FP32."},
	"threads": {Unit: "threads", Doc: "Worker threads. 0 uses all cores available to the process. The result does " +
		"not depend on it."},

	"model.family": {Values: familyNames(), Doc: "Architecture. Each part can be changed by a key of its own.\n" +
		"llama: RMSNorm, rotary positions, grouped-query attention, SwiGLU, no biases.\n" +
		"gpt2: LayerNorm, learned positions, GELU, biases.\n" +
		"anneal: for small models. Llama with squared ReLU, QK-norm, zero-initialised outputs, value embeddings, a " +
		"skip connection from the embedding, capped logits and sliding windows.\n" +
		"olmo2: Llama with norms after its branches instead of before them, and QK-norm over all heads together.\n" +
		"phi3: llama, in files of Hugging Face that fuse queries with keys and values, and gate with up.\n" +
		"gemma2: Llama with a norm before and after each branch, a scaled embedding, GeGLU, soft-caps on scores and " +
		"logits, and a window in every second layer.\n" +
		"gemma3: Llama with a norm before and after each branch, a scaled embedding, GeGLU, QK-norm, " +
		"five layers with windows to one without, and two bases of rotary positions.\n" +
		"qwen3_moe: Llama with QK-norm and routed experts in place of the feed-forward layer."},
	"model.layers": {Unit: "blocks", Doc: "Number of transformer blocks."},
	"model.dim":    {Doc: "Width of the residual stream."},
	"model.heads":  {Unit: "heads", Doc: "Number of query heads. Must divide model.dim unless model.head_dim is set."},
	"model.kv_heads": {Unit: "heads", Doc: "Number of key and value heads. Fewer than model.heads is grouped-query " +
		"attention. Must divide model.heads.", Rule: "kv_heads = heads"},
	"model.kv_lora_rank": {Unit: "elements", Doc: "Multi-head latent attention (DeepSeek-V2): keys and values of all " +
		"heads come from a latent of this size per token, and the rotated part of the keys is one for all heads. " +
		"Saves parameters; generation still caches whole keys and values. 0 turns it off. Only with model.family = " +
		"llama on the CPU, without parallel.tensor."},
	"model.rope_head_dim": {Unit: "elements", Doc: "With model.kv_lora_rank: how many elements of a head are rotated.",
		Rule: "rope_head_dim = head_dim / 3, rounded down to an even number"},
	"model.head_dim": {Doc: "Width of one head. Must be even with rotary positions.", Rule: "head_dim = dim / heads"},
	"model.ffn": {Doc: "Hidden width of the feed-forward layer.", Rule: "ffn = 8/3 · dim, rounded up to a multiple " +
		"of 64; 4 · dim with gelu or relu2"},
	"model.context": {Unit: "tokens", Doc: "Context length: tokens in a training sequence, and the most that " +
		"generation looks back on."},
	"model.vocab": {Unit: "tokens", Doc: "Vocabulary size. It may exceed the tokenizer's by padding to a multiple " +
		"of 64.", Rule: "vocab = the vocabulary of the data set's tokenizer"},
	"model.tie_embeddings": {Doc: "Share one table between the input embedding and the output head."},
	"model.qkv_bias": {Doc: "Biases of queries, keys and values, as Qwen2 and Qwen2.5 have them. The family gpt2 has " +
		"biases everywhere."},
	"model.qk_norm": {Doc: "Apply RMSNorm to each query and key head before rotary positions. It stabilises high " +
		"learning rates."},
	"model.attention_softcap": {Doc: "Cap the scores of attention: s becomes c·tanh(s/c), where c is this value, " +
		"before the mask. Gemma 2 uses 50. 0 turns it off. Not with ALiBi, nor for layers of " +
		"linear attention."},
	"model.attention_sinks": {Doc: "Give each head a learned logit that its softmax has beside the scores, without a " +
		"value, so that a query may attend to nothing (gpt-oss). Costs no time. Not for layers of linear attention, " +
		"and not with parallel.context."},
	"model.longformer_global_projections": {Doc: "Give the global tokens of longformer, the first ones of a row, " +
		"queries, keys and values from projections of their own, by which they see each other (Beltagy et al. 2020). " +
		"Costs the parameters of one more fused projection in each of these layers. Not with " +
		"parallel.context, model.lora_rank, model.attention_sinks or train.length_warmup."},
	"model.short_conv": {Unit: "taps", Doc: "Mix queries, keys and values of layers of linear attention with those " +
		"of the tokens just before, by a causal convolution of this length for every column and SiLU (4 in DeltaNet " +
		"and Gated DeltaNet; an option in GLA). 0 turns it off. Not with parallel.context."},
	"model.norm_eps": {Doc: "Epsilon of RMSNorm and LayerNorm."},
	"model.attention": {list: true, Doc: attentionDoc, Rule: "attention = full; with model.family = anneal three " +
		"windows of context / 4, then one full layer, in turn; with gemma2 one, with gemma3 five"},
	"model.logit_softcap": {Doc: "Logit soft-capping: logits z become c·tanh(z/c), where c is this value, in " +
		"training, evaluation and generation. " +
		"Gemma 2 uses 30. 0 turns it off. Hugging Face's Llama format cannot store it."},
	"model.init_std": {Doc: "Standard deviation of the initial embedding and head, and of the matrices with " +
		"model.init = gpt2."},
	"model.init": {Values: []string{"gpt2", "he", "xavier", "small"}, Doc: "Standard deviation of the initial " +
		"matrices.\n" +
		"gpt2: init_std; init_std / √(2·layers) for matrices that write to the residual stream.\n" +
		"he: √(2 / fan_in).\n" +
		"xavier: √(2 / (fan_in + fan_out)).\n" +
		"small: √(2 / (5·dim)); 2 / (layers·√dim) for matrices that write to the residual stream, as GPT-NeoX."},
	"model.zero_init": {Values: []string{"none", "residual", "head", "both"}, Doc: "Matrices that start at zero.\n" +
		"residual: those that write to the residual stream, so that every block starts as the identity.\n" +
		"head: the output head, unless it is tied."},
	"model.activation": {Values: []string{"swiglu", "geglu", "gelu", "relu2"}, Doc: "Feed-forward layer.\n" +
		"swiglu: silu(gate)·up, three matrices (llama, anneal).\n" +
		"geglu: gelu(gate)·up, three matrices (gemma2, gemma3).\n" +
		"gelu: two matrices (gpt2).\n" +
		"relu2: max(up, 0)², two matrices (anneal)."},
	"model.value_embeddings": {Values: []string{"none", "alternate", "all"}, Doc: "Family anneal only: layers with " +
		"a table of value embeddings, [vocab, kv_heads·head_dim], whose row is added to the values of each token. " +
		"It costs no FLOPs.\n" +
		"alternate: every second layer and the last."},
	"model.x0_skip": {Doc: "Family anneal only: mix the embedding into the residual stream before every layer, " +
		"with two learned factors."},
	"model.bigram": {Unit: "rows", Doc: "Family anneal only: rows of a table of pairs of tokens. The row " +
		"that a token and the one before it hash to is added to the token's embedding. It costs no FLOPs. 0 is none."},
	"model.smear": {Doc: "Family anneal only: add a share of the embedding of the token before to each embedding, " +
		"with a learned gate for each token."},
	"model.experts": {Unit: "experts", Doc: "Feed-forward layers (experts) in each block, of which a router chooses " +
		"some for every token. No token is dropped. Family qwen3_moe only."},
	"model.experts_per_token": {Unit: "experts", Doc: "Experts that each token goes through. Time per token follows " +
		"this number, memory follows model.experts."},
	"model.expert_ffn": {Doc: "Hidden width of one expert.", Rule: "expert_ffn = ffn / experts_per_token, rounded up " +
		"to a multiple of 16, with model.family = qwen3_moe"},
	"model.shared_expert_ffn": {Doc: "Hidden width of one more expert that every token goes through, with a sigmoid " +
		"gate, as in Qwen2-MoE. 0 is none. Hugging Face's qwen3_moe cannot store it."},
	"model.normalise_experts": {Doc: "Divide the weights of a token's experts by their sum. Hugging Face calls it " +
		"norm_topk_prob."},
	"model.router_aux_loss": {Doc: "Coefficient of the load-balancing loss: experts · Σ (choices of an expert per " +
		"token) · (its mean probability), the mean over the layers. It is experts_per_token if all experts " +
		"are chosen equally often. 0 turns it off."},
	"model.router_z_loss": {Doc: "Coefficient of the routers' z-loss: the mean of log²Z of their logits over tokens " +
		"and layers. It keeps the logits small. 0 turns it off; ST-MoE uses 1e-3."},
	"model.lora_rank": {Doc: "Train adapters of this rank R beside frozen weights (LoRA): W + α/R · B·A. Needs " +
		"init.from. Evaluation and generation add them; an export merges them into the weights. 0 trains the weights."},
	"model.lora_alpha": {Doc: "Scale α of the adapters, whose product is multiplied by α/R. 0 means 2 · R."},
	"model.lora_targets": {Doc: "Matrices of a layer that have adapters: patterns of names, such as attention.*, " +
		"mlp.down. All if it is empty."},
	"model.lora_dora": {Doc: "Adapters change the directions of a weight's rows, and the norms of the rows are " +
		"trained apart (DoRA). Takes the time of full fine-tuning. The paper finds it ahead of LoRA, most of all at " +
		"small ranks."},
	"model.dropout": {Doc: "Dropout probability of the embedding and of each branch's output. 0 turns it off. Try " +
		"0.1 for several epochs over little data."},
	"model.stochastic_depth": {Doc: "Probability that training skips a whole branch of the last layer for one " +
		"micro-batch. It rises linearly from the first layer. " +
		"Skipped branches are not computed. 0 turns it off; 0.1 to 0.2 are usual."},

	"model.positions": {list: true, try: "model.positions = rope, alibi, learned or none, or a list such as [rope, " +
		"rope, rope, none]", Doc: "How attention knows positions: one scheme, or a list that layers take in " +
		"turn, such as [rope, rope, rope, none].\n" +
		"rope: rotary positions, which turn queries and keys.\n" +
		"alibi: attention scores fall with the distance. The model can read rows longer than those of training.\n" +
		"learned: a learned vector for each position is added to the embedding. It applies to the whole model and " +
		"ends at model.context.\n" +
		"none: no positions; order comes from the causal mask alone."},
	"model.rope_theta": {Doc: "Base of the rotary wavelengths."},
	"model.rope_theta_local": {Doc: "Base of the rotary wavelengths in layers with model.attention = window, which " +
		"rotary scaling leaves alone. 0 uses model.rope_theta."},
	"model.score_dim": {Doc: "Attention scores are divided by the square root of this number. 0 uses " +
		"model.head_dim. Gemma calls it query_pre_attn_scalar."},
	"model.rope_scaling": {try: "model.rope_scaling = yarn:4, or none",
		Doc: "Rotary scaling as KIND:FACTOR, to read rows FACTOR times as long as the model was " +
			"first trained on: yarn:4, linear:4, ntk:4, dynamic:2 (a base that follows the context), " +
			"llama3:8 (Llama 3.1), or longrope:32 with a factor for each pair of a head (Phi-3). " +
			"yarn needs the least further training. Options follow the factor: yarn:4:fast=32:slow=1:attention=1.14, " +
			"llama3:8:low=1:high=4, longrope:32:short=1,1:long=1,2. none turns it off."},
	"model.rope_original_context": {Unit: "tokens", Doc: "Context length before rotary scaling. Read by dynamic, " +
		"yarn, llama3 and longrope.", Rule: "rope_original_context = context / the factor of rope_scaling"},
	"model.rope_layout": {Values: []string{"half", "interleaved"}, Doc: "Which elements of a head rotary positions " +
		"pair.\n" +
		"half: i with i + head_dim/2, as in Hugging Face's models.\n" +
		"interleaved: 2i with 2i + 1, as in GPT-J and Meta's Llama.\n" +
		"The two are the same model with permuted query and key rows."},

	"model.mup": {Doc: "Maximal update parametrisation (muP): initial weights, learning rates, decays, attention " +
		"scale and logit scale follow the width, so that a learning rate tuned on a narrow model " +
		"holds for a wide one. See docs/mup.md."},
	"model.mup_base_dim": {Doc: "muP: model.dim of the base model, on which optimizer.lr and model.init_std were " +
		"tuned. At this width muP changes nothing."},
	"model.mup_base_head_dim": {Doc: "muP: model.head_dim of the base model.", Rule: "mup_base_head_dim = head_dim"},
	"model.mup_base_ffn": {Doc: "muP: model.ffn of the base model.", Rule: "mup_base_ffn = ffn derived from " +
		"mup_base_dim, if ffn is derived from dim; else ffn · mup_base_dim / dim"},
	"model.mup_base_layers": {Unit: "blocks", Doc: "muP: model.layers of the base model. The output of each block " +
		"then scales with the depth (CompleteP), so that the learning rate holds for deeper models. 0 ignores the " +
		"depth."},
	"model.mup_input_scale":  {Doc: "muP: factor of the embedding, the same at every width."},
	"model.mup_output_scale": {Doc: "muP: factor of the logits, on top of the width's factor mup_base_dim / dim."},

	"distill.teacher": {Doc: "Learn from another model, too (knowledge distillation): the directory of a run or of " +
		"a Hugging Face model with the same tokenizer. Its forward pass over each micro-batch runs within the step. " +
		"The loss of a token is (1 − weight)·(cross-entropy) + weight·temperature²·KL(teacher ‖ model). The " +
		"reported loss is the cross-entropy; the divergence is reported beside it. CPU only."},
	"distill.step": {Doc: "Checkpoint step of the run in distill.teacher.", Rule: "step = the newest checkpoint"},
	"distill.hash": {Doc: "Expected SHA-256 of the weights in distill.teacher, as `anneal ckpt hash` prints it. " +
		"Other weights are refused, so that a resumed run has the same teacher.",
		Rule: "hash = the hash of what was read"},
	"distill.temperature": {Doc: "Divides the logits of both models in the divergence. Above 1, unlikely tokens " +
		"count for more."},
	"distill.weight": {Doc: "Weight of the teacher's term in the loss, above 0 and up to 1. The data's " +
		"term has the rest."},
	"distill.top_k": {Unit: "tokens", Doc: "How many of the teacher's likeliest tokens are learnt one by one. Of " +
		"all others, only the summed probability is learnt. Each takes 8 bytes for every token of the micro-batch."},

	"init.from": {Doc: "Start from trained weights: the directory of a run or of a Hugging Face model. The model's " +
		"shape comes from there; the optimizer starts fresh and the schedule at step 0. " +
		"`anneal train --init-from DIR` sets it. A resume reads the run's own checkpoints, never this directory."},
	"init.step": {Doc: "Checkpoint step of the run in init.from.", Rule: "step = the newest checkpoint"},
	"init.ewc": {Doc: "Holds weights near those of init.from, each by its importance there (elastic weight " +
		"consolidation): strength λ of the penalty λ/2 · Σ F·(w − start)². F is AdamW's mean of squared gradients in " +
		"that run, divided by its mean over all weights, so that λ compares with a weight decay. 0: off."},
	"init.ewc_step": {Doc: "Checkpoint step of the run in init.from whose second moments are F. 0: init.step. " +
		"They vanish once a task is fully learnt, so an earlier step is better."},
	"init.weights": {Doc: "Expected SHA-256 of the weights in init.from, as `anneal ckpt hash` prints it. Other " +
		"weights are refused.", Rule: "weights = the hash of what was read"},
	"init.tokenizer": {Values: []string{"related", "any"}, Doc: "Which tokenizer the data may have, compared with " +
		"that of init.from.\n" +
		"related: the same, or one with more or fewer merges and special tokens.\n" +
		"any: a different one, too.\n" +
		"Rows of the embedding and the head are copied by token. A new token starts as the mean of the rows of the " +
		"old tokens that spell it, or of all copied rows."},

	"data.path": {Doc: "Directory of a data set, made by `anneal data build`. A path in a file is relative to that " +
		"file, one on the command line to the working directory."},
	"data.mix": {list: true, Doc: "Several data sets in place of data.path: a list of NAME=DIR, such as " +
		"[web=data/web, code=data/code]. data.weights says how much is read of each. All need the same tokenizer. " +
		"Paths are relative as in data.path."},
	"data.weights": {list: true, Doc: "Share of each source of data.mix in the training rows. `anneal data mix` " +
		"shows the outcome.\n" +
		"natural: proportional to size, so that all sources have the same number of epochs.\n" +
		"temperature:T: proportional to size^(1/T). A higher T is more even.\n" +
		"unimax:N: as even as possible with at most N epochs of any source.\n" +
		"web=0.7 code=0.3: as given, in any unit.\n" +
		"The weights can change during the run: a list such as [natural, web=1 best=3 from 80% to 85%] moves them " +
		"linearly between two points; `from 80%` alone switches at once. Points are steps, percentages of the run " +
		"or tokens."},
	"data.packing": {Values: []string{"concat", "best_fit", "pad"}, Doc: "How documents fill rows of model.context " +
		"tokens. `anneal data inspect` compares the three.\n" +
		"concat: join all documents and cut the stream into rows.\n" +
		"best_fit: split only documents longer than a row, and pack the others whole where they fit best.\n" +
		"pad: one document per row; tokens beyond the row are dropped.\n" +
		"Free positions are padding, which is not trained on. Validation has train.eval_packing."},
	"data.document_mask": {Doc: "Let tokens attend only to their own document when a row holds several."},
	"data.order": {Doc: "Order of the samples by scores that `anneal data score` made; random without it. Example: " +
		"first compression over 15%, last quality over 10%.\n" +
		"first SCORES over LENGTH: start with the easiest rows and admit the rest gradually.\n" +
		"last SCORES over LENGTH: keep the best rows for the end of the run.\n" +
		"Options of first: from 10% (the share of rows at the start), by linear, root or step (how the share " +
		"grows).\n" +
		"Options of last: of 20% (the share of rows that count as best), since 500 steps (from when they are kept " +
		"back).\n" +
		"low or high before SCORES names the end of the scale that is meant. By default first takes low scores and " +
		"last high ones; for flesch it is the other way round.\n" +
		"Every epoch still contains every row once."},
	"data.skip": {Unit: "samples", try: "data.skip = 1024:2048 to leave out 1,024 samples",
		Doc: "Samples to leave out: ranges FROM:TO in training order, such as " +
			"1024:2048, separated by commas. Counted from 0; TO is not included. `anneal rewind` sets it. " +
			"Only samples still to come can be skipped."},

	"train.steps": {Unit: "steps", Doc: "Optimizer steps of the whole run. The learning-rate schedule spans them."},
	"train.minutes": {Unit: "minutes", Doc: "Time limit of one process, such as 90s, 30m or 1h30m; a plain number " +
		"is minutes. The run stops there if it has not reached train.steps. 0 sets no limit."},
	"train.batch_tokens": {Unit: "tokens", Doc: "Tokens in one optimizer step, over all micro-batches. Must be a " +
		"multiple of model.context."},
	"train.micro_batch": {Unit: "sequences", Doc: "Sequences in one forward pass. A larger number needs more " +
		"memory; the mathematics stays the same.",
		Rule: "micro_batch = the largest divisor of batch_tokens / context with at most 4096 tokens"},
	"train.batch_ramp": {Doc: "Smaller batches at the beginning.\n" +
		"FROM over TOKENS: grow linearly from FROM tokens a step to train.batch_tokens, such as 4096 over 2M " +
		"tokens.\n" +
		"SIZE until TOKENS, …: grow in stages, such as 4096 until 1M tokens, 8192 until 3M tokens.\n" +
		"The micro-batch stays the same; steps take more of them. The schedule then counts tokens instead of steps."},
	"train.batch_ramp_lr": {Values: []string{"none", "sqrt", "linear"}, Doc: "How train.batch_ramp scales the " +
		"learning rate of a smaller step.\n" +
		"none: not at all.\n" +
		"sqrt: by √(step / batch_tokens).\n" +
		"linear: by step / batch_tokens."},
	"train.length_warmup": {Doc: "Shorter sequences at the beginning: FROM over LENGTH, such as 64 over 10%, 64 " +
		"over 500 steps or 64 over 2M tokens. " +
		"Rows are cut into equal pieces, so that a step keeps its number of tokens. Lengths are multiples of 8 " +
		"that divide model.context."},
	"train.norms_every": {Unit: "steps", Doc: "Write the gradient's norm of every layer, and of every group of " +
		"parameters (matrix, embedding, …), to metrics.jsonl this often, and how far the update moved them. " +
		"0 never does. The global norm is made of the same sums; such an update reads the weights a few times more."},
	"train.noise_scale_every": {Unit: "steps", Doc: "Estimate the gradient noise scale this often. It is the batch " +
		"size in tokens beyond which a larger batch helps little. 0 never does. Needs at least two micro-batches a " +
		"step, and on one rank 4 bytes per parameter: the gradient of every micro-batch is measured alone."},
	"train.clip": {Doc: "Maximum global L2 norm of the gradient. Longer gradients are scaled down to it. 0 turns " +
		"clipping off."},
	"train.z_loss": {Doc: "Coefficient of the z-loss, log²Z of the softmax, which keeps logits from drifting. PaLM " +
		"uses 1e-4. It is not part of the reported loss. 0 turns it off."},
	"train.eval_every": {Unit: "steps", Doc: "Evaluate on held-out documents this often. 0 evaluates only at the " +
		"end."},
	"train.eval_tokens": {Unit: "tokens", Doc: "Held-out tokens of one evaluation. 0 uses all."},
	"train.eval_packing": {Values: []string{"concat", "best_fit", "pad"}, Doc: "How held-out documents fill rows, as " +
		"data.packing.\n" +
		"concat: every token counts, and bits per byte are comparable whatever the training's packing.\n" +
		"best_fit: no document that fits in a row is cut, so that eval_answers can judge each as a whole.\n" +
		"pad: tokens beyond a row do not count."},
	"train.eval_answers": {Doc: "At each evaluation, count how many tokens the model finds most likely, and in how " +
		"many documents all of them, apart from prompts: in the held-out documents and in as many tokens of the " +
		"training split. An evaluation then takes twice as long."},
	"train.log_every": {Unit: "steps", Doc: "Print a line of progress this often when the output is not a " +
		"terminal, and write the time of each phase of a step to metrics.jsonl this often."},

	"optimizer.name": {Values: optimizerNames(), Doc: "Update rule.\n" +
		"adamw: Adam with decoupled weight decay.\n" +
		"adam8bit: AdamW with 8-bit state for large matrices.\n" +
		"adam: Adam with the decay in the gradient.\n" +
		"sgd: gradient descent, optionally with momentum.\n" +
		"lion: sign of the momentum, with half of AdamW's state.\n" +
		"ademamix: AdamW with a second, slow momentum.\n" +
		"adafactor: factored second moment, with almost no state.\n" +
		"muon: orthogonalised updates for hidden matrices, AdamW for the rest.\n" +
		"soap: Adam in the eigenbasis of Shampoo's preconditioner for hidden matrices, AdamW for the rest.\n" +
		"schedulefree: AdamW that averages its steps and needs no decay of the learning rate.\n" +
		"sophia: clipped steps scaled by estimated curvature."},
	"optimizer.lr":        {Doc: "Peak learning rate."},
	"optimizer.momentum":  {Doc: "SGD and Muon only: decay of the momentum. With SGD, 0 turns momentum off."},
	"optimizer.dampening": {Doc: "SGD only: fraction of the gradient that is left out of the momentum."},
	"optimizer.nesterov":  {Doc: "SGD only: Nesterov momentum."},
	"optimizer.beta3":     {Doc: "AdEMAMix only: decay of the slow first moment."},
	"optimizer.alpha":     {Doc: "AdEMAMix only: weight of the slow first moment in the update."},
	"optimizer.ramp": {Unit: "steps", Doc: "AdEMAMix only: updates over which alpha and beta3 rise to their " +
		"values. 1 starts with the full values.", Rule: "ramp = train.steps"},
	"optimizer.variant": {Values: []string{"t5", "palm"}, Doc: "Adafactor only: the published variant.\n" +
		"t5: factored second moment, no momentum.\n" +
		"palm: full second moment, momentum, decay by the square of the learning rate."},
	"optimizer.relative_step": {Doc: "Adafactor only: cap the learning rate of each group at 1/√update."},
	"optimizer.scale_parameter": {Doc: "Adafactor only: multiply the learning rate by the root mean square of the " +
		"weights."},
	"optimizer.muon_scale": {Values: []string{"match_rms", "jordan", "spectral_mup"}, Doc: "Muon only: scale of an " +
		"update.\n" +
		"match_rms: the size of AdamW's updates, so that AdamW's learning rate and decay can be used.\n" +
		"jordan: the learning rate is the spectral norm of an update, times √(rows/cols) for tall matrices.\n" +
		"spectral_mup: the learning rate times √(rows/cols) is the spectral norm, for model.mup."},
	"optimizer.newton_schulz": {Values: []string{"polar_express", "jordan"}, Doc: "Muon only: coefficients of the " +
		"five Newton–Schulz steps.\n" +
		"polar_express: a different polynomial at each step; closer to orthogonal at the same cost.\n" +
		"jordan: the original coefficients."},
	"optimizer.newton_schulz_operands": {Values: []string{"f32", "bf16"}, Doc: "Muon only: format to which the " +
		"operands of the Newton–Schulz products are rounded. bf16 is Muon's original choice, and faster where the " +
		"device multiplies BF16 faster."},
	"optimizer.normuon": {Doc: "Muon only: normalise the rows of updates by a running mean of their squares " +
		"(NorMuon), with decay beta2."},
	"optimizer.adamw_lr": {Doc: "Muon only: peak learning rate of the parameters that AdamW updates: embeddings, " +
		"head and norms.", Rule: "adamw_lr = lr with muon_scale = match_rms, else lr / 20"},
	"optimizer.rho": {Doc: "Sophia only: weight of the curvature. A larger value clips fewer weights. Choose it so " +
		"that win_rate in metrics.jsonl is 0.1 to 0.5."},
	"optimizer.hessian_every": {Unit: "updates", Doc: "Sophia only: updates between two estimates of the " +
		"curvature. Each costs a forward and a backward pass."},
	"optimizer.basis_every": {Unit: "updates", Doc: "SOAP only: updates between two steps of its bases towards the " +
		"eigenvectors."},
	"optimizer.moments": {Values: []string{"f32", "bf16"}, Doc: "Adam and AdamW only: format of their moments. bf16 " +
		"halves their memory and rounds stochastically."},
	"optimizer.masters": {Values: []string{"f32", "f64"}, Doc: "Adam and AdamW only: format of the weights that " +
		"updates add up in. f64 keeps masters and moments in FP64, 24 bytes per parameter instead of 8, and computes " +
		"with the masters rounded to FP32: updates too small for FP32 are not lost. CPU only, and slower."},
	"optimizer.beta1": {Doc: "Decay of the first moment."},
	"optimizer.beta2": {Doc: "Decay of the second moment."},
	"optimizer.eps":   {Doc: "Epsilon, added to the square root of the second moment."},
	"optimizer.weight_decay": {Doc: "Weight decay of matrices and the head: w ← w·(1 − lr·decay). With adam and " +
		"sgd it is added to the gradient instead."},
	"optimizer.decay_timescale": {Doc: "Time over which weight decay forgets, 1/(lr·decay) steps, as a part of the " +
		"run. It decides optimizer.weight_decay, also where the rate changes (Wang & Aitchison 2024); a run that is " +
		"made longer keeps its decay, as it keeps its warmup. 0: weight_decay itself is given."},
	"optimizer.cautious_decay": {Doc: "Decay a weight only where its update has the same sign, so that decay never " +
		"works against the update."},
	"optimizer.decay_embeddings": {Doc: "Decay the embedding table as well. A tied head counts as embedding."},

	"optimizer.groups.matrix.lr_ratio": {Doc: "Learning rate of hidden matrices, as a multiple of optimizer.lr. 0 " +
		"freezes them."},
	"optimizer.groups.matrix.weight_decay": {Doc: "Weight decay of hidden matrices.", Rule: "weight_decay = " +
		"optimizer.weight_decay"},
	"optimizer.groups.embedding.lr_ratio": {Doc: "Learning rate of embeddings (tokens, positions, values), as a " +
		"multiple of optimizer.lr. 0 freezes them."},
	"optimizer.groups.embedding.weight_decay": {Doc: "Weight decay of embeddings (tokens, positions, " +
		"values).", Rule: "weight_decay = optimizer.weight_decay with optimizer.decay_embeddings, else 0"},
	"optimizer.groups.head.lr_ratio": {Doc: "Learning rate of an untied output head, as a multiple of " +
		"optimizer.lr. 0 freezes it."},
	"optimizer.groups.head.weight_decay": {Doc: "Weight decay of an untied output head.", Rule: "weight_decay = " +
		"optimizer.weight_decay"},
	"optimizer.groups.norm.lr_ratio": {Doc: "Learning rate of norm gains and of the factors of model.x0_skip and " +
		"model.value_embeddings, as a multiple of optimizer.lr. 0 freezes them."},
	"optimizer.groups.norm.weight_decay": {Doc: "Weight decay of norm gains and of those " +
		"factors.", Rule: "weight_decay = 0"},
	"optimizer.groups.bias.lr_ratio": {Doc: "Learning rate of biases (gpt2, linear:gated), as a multiple of " +
		"optimizer.lr. 0 freezes them."},
	"optimizer.groups.bias.weight_decay": {Doc: "Weight decay of biases.", Rule: "weight_decay = 0"},

	"optimizer.patterns": {try: "optimizer.patterns = layers.*.mlp.* lr_ratio=0.5; embed weight_decay=0",
		Doc: "Learning rates and weight decays of parameters by name, beside those of their groups: PATTERN " +
			"lr_ratio=X weight_decay=Y, and further ones behind semicolons; the last that matches wins. * stands for " +
			"any text: layers.0.* lr_ratio=0.5."},

	"schedule.name": {Values: []string{
		"cosine", "wsd", "wsds", "linear", "inverse_sqrt", "power", "step", "restarts", "cyclic", "one_cycle",
		"constant",
	},
		Doc: "Learning rate after the warmup.\n" +
			"cosine: falls over the whole run along a cosine.\n" +
			"wsd: warmup, stable, decay. Constant, then falls at the end.\n" +
			"wsds: wsd with several decays, each followed by a return to the peak (schedule.branches).\n" +
			"linear: falls over the whole run along a line.\n" +
			"inverse_sqrt: falls as √(warmup / t).\n" +
			"power: falls as (warmup / t)^0.51, then falls at the end as wsd does.\n" +
			"step: constant, and falls at once by the same factor after each of schedule.branches.\n" +
			"restarts: a cosine that begins again after each of schedule.branches (SGDR).\n" +
			"cyclic: rises and falls along lines in each cycle; cycles end at schedule.branches.\n" +
			"one_cycle: rises from a 25th of the peak until schedule.warmup, then falls; both along a cosine.\n" +
			"constant: stays at the peak. The only one of optimizer.name = schedulefree, which takes it by itself."},
	"schedule.warmup": {Unit: "steps", amount: true, Doc: "Steps over which the learning rate rises linearly from " +
		"0 to its peak. A percentage of train.steps (2%) or an amount of tokens (1M tokens) is rounded up to whole " +
		"steps. 0 and 1 mean no warmup.",
		Rule: warmupRule},
	"schedule.final_ratio": {Doc: "Learning rate at the end, as a fraction of the peak. With inverse_sqrt it is " +
		"the minimum. With 0 the rate would be 0 one step after the last.", Rule: finalRatioRule},
	"schedule.horizon": {Unit: "steps", amount: true, Doc: "Step at which the rate reaches its final ratio, where it " +
		"then stays. With cosine, linear, wsd, power and one_cycle: 260B tokens of a run of 300B (GPT-3), or 87%. It " +
		"may lie beyond the run (OLMo 2), which then ends at a higher rate. 0: the end of the run."},
	"schedule.decay_fraction": {Doc: "Fraction of the run in which wsd or power decays. With wsds, fraction of the " +
		"run up to the end of each branch."},
	"schedule.decay_shape": {Values: []string{"linear", "sqrt", "cosine", "exponential", "shifted_exponential"},
		Doc: "Shape of the decay of wsd, wsds and power, for x from 0 to 1.\n" +
			"linear: 1 − x.\n" +
			"sqrt: 1 − √x.\n" +
			"cosine: ½(1 + cos πx).\n" +
			"exponential: final_ratioˣ of the peak, by the same factor at each step (MiniCPM).\n" +
			"shifted_exponential: 2·½ˣ − 1."},
	"schedule.weight_decay": {Values: []string{"constant", "linear"}, Doc: "Weight decay over the run.\n" +
		"constant: the same in every step.\n" +
		"linear: falls along a line, to 0 one step after the last."},
	"schedule.momentum_warmup": {Unit: "steps", amount: true, Doc: "SGD and Muon only: steps over which the momentum " +
		"rises from 0.85 to optimizer.momentum. Early gradients soon point elsewhere. 0: none."},
	"schedule.branches": {try: "schedule.branches = 25%, 50%",
		Doc: "Ends of the decays of wsds and of the cycles of restarts and cyclic, after each of which the learning " +
			"rate rises again; the end of the run is always the last. With step: where it falls. Steps, percentages " +
			"of the run or tokens, such as 25%, 50%.", Rule: branchesRule},

	"loss_scale.dynamic": {Doc: "fp16 only: dynamic loss scaling. An overflow halves the scale and skips the " +
		"update; loss_scale.interval updates without overflow double it. false keeps loss_scale.init."},
	"loss_scale.init": {Doc: "fp16 only: initial loss scale. A power of two adds no rounding."},
	"loss_scale.interval": {Unit: "updates", Doc: "fp16 only: updates without overflow after which the loss scale " +
		"is doubled."},
	"loss_scale.hysteresis": {Unit: "updates", Doc: "fp16 only: number of overflows, counted since the loss scale " +
		"was last doubled, from which on each halves it. 1 halves at the first; 2 keeps the scale at the first."},
	"loss_scale.floor": {Doc: "fp16 only: smallest loss scale. An overflow there counts as a skip " +
		"(guard.max_skips)."},

	"fp8.scaling": {Values: []string{"current", "delayed", "block", "mx"}, Doc: "fp8 only: where the scales of an " +
		"operand come from.\n" +
		"current: its own largest magnitude.\n" +
		"delayed: the largest magnitude of the last steps.\n" +
		"block: a scale for each block of 1 × 128 activations or gradients, and of 128 × 128 weights (DeepSeek-V3).\n" +
		"mx: a scale for every 32 numbers (MXFP8)."},
	"fp8.history": {Unit: "steps", Doc: "fp8 with delayed scaling only: steps whose largest magnitude counts."},
	"fp8.margin":  {Doc: "fp8 with delayed scaling only: headroom of the scales, in powers of two."},
	"fp8.attention": {Doc: "fp8 only: attention has FP8 operands, too (FlashAttention-3). Queries, keys, values and " +
		"probabilities are rounded to E4M3, with a scale for each head of a token; gradients are those of bf16."},

	"checkpoint.every": {Unit: "steps", Doc: "Save a checkpoint this often. 0 saves only at the end and when the " +
		"run is stopped."},
	"checkpoint.keep": {Unit: "checkpoints", Doc: "Number of newest checkpoints to keep. At least 2, so that a " +
		"damaged one can be replaced."},
	"checkpoint.max_failures": {Unit: "checkpoints",
		Doc: "Stop the run after this many checkpoints in a row could not " +
			"be written. After fewer, it warns, continues, and saves again after checkpoint.every steps. " +
			"A run without any checkpoint stops at the first."},

	"guard.max_skips": {Unit: "steps", Doc: "Stop the run after this many skipped updates in a row. An update is " +
		"skipped if the loss or gradient is not finite, or is a spike."},
	"guard.spike_z": {Unit: "standard deviations", Doc: "Skip an update whose loss or gradient norm is this far " +
		"above the mean of the last accepted steps. OLMo uses 6. 0 turns the check off."},
	"guard.window": {Unit: "steps", Doc: "Accepted steps that guard.spike_z compares with. Checking begins after " +
		"half as many."},
	"guard.on_divergence": {Values: []string{"stop", Rewind},
		Doc: "What a run does after guard.max_skips skipped updates " +
			"in a row.\n" +
			"stop: end with exit code 4.\n" +
			"rewind: go back to the last multiple of checkpoint.every before the first of these updates, " +
			"and leave out all batches from there up to the last of them, as `anneal rewind` does. The weights are " +
			"then those of a run that never saw these batches. While updates are skipped, no checkpoint is saved."},
	"guard.rewinds": {Unit: "rewinds", Doc: "Most times that a run rewinds by itself; after that it stops."},
	"guard.rewound": {Unit: "rewinds",
		Doc: "Times that the run has rewound by itself so far. The run writes it; leave " +
			"it out of other configs."},
	"guard.replay_every": {Unit: "steps",
		Doc: "Run the first micro-batch of a step twice this often, and compare the bits of " +
			"the losses and gradients. A difference is silent data corruption, by a faulty processor or " +
			"memory: the run stops with exit code 9. It costs the time of one micro-batch each time. 0 turns it off."},

	"watchdog.enabled": {Doc: "Notice when reading data, a forward and backward pass, an update, an evaluation or a " +
		"checkpoint takes ten times as long as the slowest so far, and at least a minute; the first of each may take " +
		"an hour. The run then warns, and writes the stacks of all goroutines and its state into its directory crash."},
	"watchdog.exit": {Doc: "End the process with exit code 8 once the watchdog has written its report, so that a " +
		"supervisor can resume the run from its last checkpoint. Without it the run continues as soon as it can."},

	"eval.tasks": {Doc: "Evaluate tasks during training: a YAML file of lm-evaluation-harness, or a directory of " +
		"them, as for `anneal eval --tasks`. The figures are in metrics.jsonl, under tasks. Tasks in which the " +
		"model writes text are refused. Paths are relative as in data.path."},
	"eval.tasks_every": {Unit: "steps", Doc: "Evaluate the tasks this often, and at the end. 0: at the end only."},

	"samples.every": {Unit: "steps", Doc: "Have the model continue the prompts after so many steps, and after the " +
		"last. The texts are in the directory samples, and `anneal watch` shows them. They change no bit of the " +
		"training. 0: never."},
	"samples.prompts": {Doc: "A text file with a prompt on each line. Without one the model writes the beginning of " +
		"a text. Paths are relative as in data.path. A resume whose file is gone writes no samples."},
	"samples.tokens": {Unit: "tokens", Doc: "Most tokens to write after each prompt; each costs a forward " +
		"pass of all prompts."},
	"samples.temperature": {Doc: "0: always the most likely token. 1: sample as the model predicts. Draws " +
		"depend only on the seed and the position, so that equal weights write equal texts."},

	"average.ema": {Doc: "Decay of an exponential moving average (EMA) of the weights. 0.999 averages about a " +
		"thousand updates. The average is evaluated beside the weights; `--weights ema` uses it. It takes 4 bytes " +
		"a parameter. 0 turns it off."},

	"memory.recompute": {try: "none, every_layer, every:N, sqrt, selective, budget:SIZE",
		Doc: "Activations that the backward pass recomputes instead of keeping (activation " +
			"checkpointing). The gradients have the same bits.\n" +
			"none: keep all.\n" +
			"selective: recompute only attention.\n" +
			"every_layer: keep only the input of each layer.\n" +
			"every:N: keep only the input of every N-th layer.\n" +
			"sqrt: every:N with N = √layers.\n" +
			"budget:SIZE: recompute just enough to make the activations fit, such as budget:1.5GiB."},

	"memory.recompute_inputs": {Values: []string{"full", "bf16"}, Doc: "Format in which recomputed segments keep " +
		"their inputs.\n" +
		"full: that of the residual stream.\n" +
		"bf16: half of its bytes. The forward pass continues from the rounded numbers, so the gradient is exact for " +
		"what was computed; a run then depends on memory.recompute."},
	"memory.offload": {list: true, try: "memory.offload = [optimizer, checkpoints], or none",
		Doc: "What is kept in a file instead of memory (ZeRO-Infinity, Rajbhandari et al. 2021, arXiv 2104.07857): " +
			"a list, or none. The result has the same bits. On CPUs only.\n" +
			"optimizer: the optimizer state. It is updated in pieces: one is updated while the state of the last is " +
			"written and that of the next is read. A step reads and writes all of the state once.\n" +
			"checkpoints: activation checkpoints, the inputs of the segments that memory.recompute reruns. One is " +
			"written while its segment is computed, and read while the segment after it is rerun. Worth it where " +
			"rows are long: what it saves grows with the tokens of a micro-batch. They do not count in " +
			"memory.recompute = budget:SIZE."},
	"memory.offload_dir": {Doc: "Directory of the file of memory.offload: one on a fast local disk, not in memory. " +
		"The file has no name there and is gone when the run ends, however it ends; on Windows its name is " +
		".anneal-offload-* until then. The run's own checkpoints do not depend on it."},

	"parallel.ranks": {Doc: "Ranks that train the model together, each on its own micro-batches. The result has the " +
		"bits of one rank, whatever their number. Without a launcher they are goroutines of one process, which share " +
		"its threads. Under mpirun or srun, every process is a rank, and their number is that of the launcher."},
	"parallel.zero": {try: "0, 1, 2 or 3", Doc: "Stage of ZeRO: which parts of the state ranks divide " +
		"among them. It changes memory and traffic, but no bit. (Rajbhandari et al. 2020, arXiv 1910.02054.)\n" +
		"0: every rank keeps all.\n" +
		"1: a rank keeps its share of the optimizer state and of the FP32 weights.\n" +
		"2: also only its share of the gradients.\n" +
		"3: also only its share of the weights; those of a layer arrive just before they are needed (FSDP)."},
	"parallel.tensor": {Unit: "ranks", Doc: "Ranks that share every layer: each has some heads and some hidden units " +
		"of the feed-forward layers, and some rows of the token tables. (Megatron, Shoeybi et al. 2019, arXiv " +
		"1909.08053.) Sums over ranks come in another order than on one rank, so the bits differ. It divides " +
		"model.heads and model.ffn. What they send in every layer is large: use it where links are fastest."},
	"parallel.sequence": {Doc: "With parallel.tensor: also share the tokens between the products of a layer, so that " +
		"norms, dropout and the residual stream take 1/tensor of the time and memory. What is sent stays the same. " +
		"(Korthikanti et al. 2022, arXiv 2205.05198.)"},
	"parallel.context": {Unit: "ranks",
		Doc: "Ranks that share the tokens of every sequence, for long ones: the memory " +
			"of activations falls by this factor. It divides model.context into 2·context parts. " +
			"Sums come in another order than on one rank, so the bits differ."},
	"parallel.attention": {Values: attentions,
		Doc: "With parallel.context: how tokens attend to those of other ranks.\n" +
			"ring: keys and values travel from rank to rank, each computes with those it has. (Liu et al. " +
			"2023, arXiv 2310.01889.)\n" +
			"ulysses: ranks exchange tokens for heads, so that each has all tokens of some heads. " +
			"It works with every pattern, and divides the heads. (Jacobs et al. 2023, arXiv 2309.14509.)"},
	"parallel.pipeline": {Unit: "stages", Doc: "Stages of a pipeline: each has some of the layers, and micro-batches " +
		"pass through them. (Huang et al. 2018, arXiv 1811.06965.) With S stages and M micro-batches a rank, " +
		"ranks are idle for about (S − 1)/M of the time. It sends the least. It changes no bit, " +
		"unless the head is tied to the embedding."},
	"parallel.schedule": {Doc: "With parallel.pipeline: the order in which a stage works.\n" +
		"gpipe: all forward passes, then all backward passes. It keeps the activations of all micro-batches.\n" +
		"1f1b: one forward, one backward pass in turn. It keeps those of at most as many micro-batches as there are " +
		"stages. (Narayanan et al. 2021, arXiv 2104.04473.)\n" +
		"interleaved:V: every rank has V runs of layers, so ranks are idle for 1/V of that time. They send V times " +
		"more, and keep a little more.\n" +
		"zb-h1: like 1f1b, but gradients of weights are computed later, where ranks would be idle. (Qi et al. 2023, " +
		"arXiv 2401.10241.)"},
	"parallel.timeout": {Unit: "minutes", Doc: "Time to wait for another rank before the run ends with exit " +
		"code 8."},
	"parallel.wire": {Values: wires, Doc: "Number format in which gradients travel between ranks. " +
		"It changes bits, even with one rank; for one value, any number of ranks gives the same bits.\n" +
		"f32: 4 bytes a parameter and micro-batch; nothing is rounded.\n" +
		"bf16: 2 bytes. Each sum is rounded to BF16 before it travels.\n" +
		"int8: 1 byte, and a scale for every 256 elements: q = round(127·g / max|g|), rounded up or down at random " +
		"so that its mean is right.\n" +
		"Received sums are added in FP32. No memory is kept between steps. Use bf16 or int8 only where links are too " +
		"slow for f32; `--dry-run --ranks N` prints the bytes."},
	"parallel.sum_block": {Unit: "micro-batches", Doc: "Consecutive micro-batches that one rank computes and sums " +
		"before the sum travels. With N the traffic of gradients is N times less. It changes bits, even of a run " +
		"with one rank. A step needs ranks × N micro-batches, or ranks stay idle. Above 1 a rank keeps the gradients " +
		"of the whole model, also at stages 2 and 3 of ZeRO. Leave it at 1 where links are fast."},
	"parallel.outer.groups": {Unit: "groups", Doc: "Groups of ranks that step alone and meet every " +
		"parallel.outer.every steps. 0 or 1 turns it off. (DiLoCo, Douillard et al. 2023, arXiv 2311.08105.) " +
		"The micro-batches of a step are dealt to the groups in turn. Where groups meet:\n" +
		"Δ = mean over groups of (start − w); m = momentum·m + Δ; start = start − lr·(Δ + momentum·m)\n" +
		"Every group continues from the new start, with its own optimizer state. parallel.ranks and the " +
		"micro-batches of a step must be multiples of it. Memory: 8 bytes a parameter, for start and m, which the " +
		"ranks of a group divide from stage 1 of ZeRO on. Traffic between groups falls by the factor " +
		"parallel.outer.every. The number of groups changes the result. Do not use it where links are fast: the " +
		"loss is higher for the same tokens."},
	"parallel.outer.every": {Unit: "steps", Doc: "Steps that groups take alone before they meet. More " +
		"steps send less and lose more. DiLoCo uses 500; the steps are counted from the beginning of the run, " +
		"and groups also meet at its last step."},
	"parallel.outer.lr": {Doc: "Learning rate of the outer step. DiLoCo uses 0.7. With 1, and momentum 0, groups " +
		"continue from the mean of their weights (local SGD, Stich 2018, arXiv 1805.09767)."},
	"parallel.outer.momentum": {Doc: "Nesterov momentum of the outer step. DiLoCo uses 0.9, where groups " +
		"meet hundreds of times, 500 steps apart. It moves by lr / (1 − momentum) times Δ in the end: use 0 or 0.5 " +
		"for few meetings, or frequent ones."},

	"log.sinks": {list: true, try: "log.sinks = [tensorboard, prometheus], or none",
		Doc: "Where metrics go besides metrics.jsonl: a list, or none. No sink delays the run: records that it " +
			"does not take in time are dropped and counted, and a warning says so.\n" +
			"tensorboard: event files in RUN/tensorboard: `tensorboard --logdir RUN`.\n" +
			"prometheus: metrics of the last step at http://HOST:PORT/metrics (log.prometheus_listen).\n" +
			"trackio: metrics and alerts to a trackio server (log.trackio_url)."},
	"log.every": {Unit: "steps", Doc: "Steps between the records of tensorboard and trackio. Evaluations and the " +
		"last step are always recorded."},
	"log.prometheus_listen": {Doc: "HOST:PORT on which Prometheus reads the metrics. It is read-only and asks for " +
		"no password: with an address that others can reach, such as :9464 in a container, everybody on that " +
		"network can read it. Port 0 takes a free one."},
	"log.trackio_url": {Doc: "URL of the trackio server. The write token is its query, ?write_token=…, or " +
		"better the environment variable TRACKIO_WRITE_TOKEN, which is not kept in config.yaml."},
	"log.trackio_project": {Doc: "Project of the run in trackio. The run has the name of its directory."},
	"log.webhook": {Doc: "URL to which alerts are sent as JSON by POST: a skipped update (nan, spike), a stall, any " +
		"warning, and the end of a process (ended, stopped, failed, diverged). Slack, Mattermost and Discord show " +
		"its text. Each is tried three times; of nan, spike and stall at most one a minute is sent. The empty text " +
		"turns it off."},
}

package config

import (
	"slices"
	"strings"
)

// elsewhere says what the settings of other programs are here: of Hugging Face (config.json, TrainingArguments),
// PyTorch, nanoGPT, Megatron-LM, DeepSpeed and torchtitan. Each line has a suggestion and their names for it.
var elsewhere = []struct{ try, names string }{
	{"model", "network architecture model_args model_config"},
	{"train", "training trainer training_args train_args job"},
	{"checkpoint", "checkpoints checkpointing"},
	{"parallel", "parallelism distributed"},
	{"model.layers", "n_layer n_layers num_layers num_hidden_layers depth"},
	{"model.dim", "d_model n_embd hidden_size embed_dim embedding_dim width hidden hidden_dim"},
	{"model.heads", "n_head n_heads num_heads num_attention_heads"},
	{"model.kv_heads", "n_kv_heads num_kv_heads num_key_value_heads num_query_groups"},
	{"model.head_dim", "d_head kv_channels"},
	{"model.ffn", "d_ff ffn_dim ffn_hidden_size intermediate_size mlp_dim n_inner"},
	{"model.context", "seq_len seq_length sequence_length max_seq_len max_seq_length max_length block_size n_ctx " +
		"n_positions context_length max_position_embeddings"},
	{"model.vocab", "vocab_size padded_vocab_size"},
	{"model.tie_embeddings", "tie_word_embeddings weight_tying"},
	{"model.activation", "hidden_act activation_function"},
	{"model.norm_eps", "rms_norm_eps layer_norm_eps layer_norm_epsilon layernorm_epsilon"},
	{"model.init_std", "initializer_range init_method_std"},
	{"model.dropout", "attention_dropout hidden_dropout attn_pdrop resid_pdrop embd_pdrop"},
	{"model.attention = window:4096", "sliding_window attention_window"},
	{"model.experts", "num_experts num_local_experts n_experts n_routed_experts"},
	{"model.experts_per_token", "num_experts_per_tok moe_router_topk"},
	{"model.router_aux_loss", "router_aux_loss_coef moe_aux_loss_coeff"},
	{"model.lora_rank", "lora_r lora_dim"},
	{"train.steps", "max_steps max_iters train_iters num_steps iterations total_steps"},
	{"train.steps; `anneal train --dry-run` says how often they read the data", "epochs num_epochs num_train_epochs " +
		"max_epochs"},
	{"train.minutes", "max_time time_limit hours"},
	{"train.micro_batch, in sequences, or train.batch_tokens, in tokens of a step", "batch_size bs " +
		"per_device_train_batch_size micro_batch_size train_micro_batch_size_per_gpu local_batch_size"},
	{"train.batch_tokens", "global_batch_size train_batch_size batch total_batch_size"},
	{"train.batch_tokens: a step accumulates the micro-batches that it needs", "gradient_accumulation_steps " +
		"grad_accum grad_accum_steps gradient_accumulation accumulate_grad_batches"},
	{"train.clip", "max_grad_norm grad_clip clip_grad gradient_clipping gradient_clip_val max_norm"},
	{"train.eval_every", "eval_steps eval_interval eval_freq evaluation_strategy eval_strategy"},
	{"train.eval_tokens", "eval_iters"},
	{"train.log_every", "logging_steps log_interval log_freq"},
	{"train.batch_ramp", "rampup_batch_size"},
	{"optimizer.lr", "learning_rate max_lr peak_lr base_lr"},
	{"optimizer.beta1", "adam_beta1"},
	{"optimizer.beta2", "adam_beta2"},
	{"optimizer.eps", "adam_eps adam_epsilon epsilon"},
	{"optimizer.weight_decay", "wd"},
	{"optimizer.name", "optim optimizer_type"},
	{"optimizer.name = adam8bit", "optim_bits adam_8bit adamw_8bit"},
	{"schedule.name", "lr_scheduler lr_scheduler_type scheduler lr_decay_style lr_schedule"},
	{"schedule.warmup", "warmup_steps warmup_iters num_warmup_steps lr_warmup_iters warmup_ratio lr_warmup_fraction"},
	{"schedule.final_ratio", "min_lr min_lr_ratio lr_min end_lr"},
	{"schedule.decay_fraction", "decay_ratio lr_decay_ratio cooldown_fraction"},
	{"schedule.horizon", "lr_decay_iters lr_decay_steps"},
	{"precision", "dtype torch_dtype bf16 fp16 fp8 tf32 amp mixed_precision params_dtype compute_dtype"},
	{"loss_scale.init", "initial_loss_scale"},
	{"memory.recompute", "gradient_checkpointing activation_checkpointing activation_checkpoint " +
		"recompute_granularity"},
	{"memory.offload", "cpu_offload offload_optimizer"},
	{"checkpoint.every", "save_steps save_interval save_every checkpoint_interval"},
	{"checkpoint.keep", "save_total_limit keep_latest_k"},
	{"init.from", "model_name_or_path pretrained init_from load load_checkpoint resume_from_checkpoint"},
	{"data.path", "dataset dataset_name dataset_path data_path train_file train_data"},
	{"data.mix", "datasets train_data_paths"},
	{"data.weights", "mixture_weights data_weights"},
	{"distill.teacher", "teacher_model"},
	{"average.ema", "ema_decay use_ema"},
	{"threads", "num_threads num_workers n_threads"},
	{"samples.every", "sample_every sample_interval"},
	{"parallel.ranks", "world_size nproc_per_node num_gpus data_parallel_size data_parallel_replicate_degree"},
	{"parallel.zero", "zero_stage zero_optimization fsdp data_parallel_shard_degree"},
	{"parallel.tensor", "tp tensor_parallel tensor_parallel_size tensor_model_parallel_size tensor_parallel_degree"},
	{"parallel.pipeline", "pp pipeline_parallel_size pipeline_model_parallel_size pipeline_parallel_degree"},
	{"parallel.context", "cp context_parallel_size context_parallel_degree"},
	{"parallel.sequence", "sequence_parallel"},
	{"parallel.schedule", "pipeline_parallel_schedule"},
	{"`anneal train --out RUN`", "output_dir out_dir save_dir save"},
	{"log.sinks", "report_to wandb tensorboard wandb_log"},
}

// Elsewhere returns what a setting of another program is here: a key, or what to try; "" if the name is unknown.
func Elsewhere(name string) string {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	for _, x := range elsewhere {
		if slices.Contains(strings.Fields(x.names), name) {
			return x.try
		}
	}
	return ""
}

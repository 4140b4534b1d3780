"""Makes tiny models saved by transformers, each with a tokenizer and with logits.json, what the model answers:

llama/ one file of F32 weights         llama3/ frequencies scaled as Llama 3.1's    mistral/ windows in all layers, F16
qwen3/ BF16 shards, tied               linear/, yarn/, longrope/: others            windows/ a Qwen3 with windows in some layers
gpt2/ tied, no n_inner                 gpt2-untied/ F16     gemma2/ soft-caps  gemma3/ two bases, one scaled, BF16
qwen3_moe/ experts                     qwen2/ biases, a window in the last layer, BF16
mixtral/ experts without QK-norm       olmo2/ norms after the branches   phi3/ fused, windows and longrope, BF16

Weights follow a fixed formula; logits are computed in float64 from the weights as stored. Run from this directory:
python make_golden.py
"""
import json
import shutil

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (Gemma2Config, Gemma2ForCausalLM, Gemma3ForCausalLM, Gemma3TextConfig, GPT2Config, GPT2LMHeadModel, LlamaConfig,
                          LlamaForCausalLM, MistralConfig, MistralForCausalLM, MixtralConfig, MixtralForCausalLM, Olmo2Config, Olmo2ForCausalLM, Phi3Config, Phi3ForCausalLM, Qwen2Config,
                          Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM)

IDS = [1, 5, 9, 33, 60, 9, 2, 17, 41, 58, 3, 30]


def tokenizer(path):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=60, special_tokens=["<|pad|>", "<|bos|>", "<|eos|>"], show_progress=False)
    tok.train_from_iterator(["the cat sat on the mat and the dog ate the fat rat"] * 4, trainer)
    tok.save(path)


def make(name, model, dtype, **save):
    with torch.no_grad():
        for k, (pname, p) in enumerate(sorted(model.named_parameters())):
            i = torch.arange(p.numel(), dtype=torch.float64)
            w = torch.sin(i * 1.7 + k * 0.9) * 0.3 + torch.cos(i * 0.31) * 0.05
            if "norm" in pname or ".ln_" in pname and pname.endswith("weight"):
                w = 1 + w * 0.5
            p.copy_(w.reshape(p.shape))
    model = model.to(dtype)
    shutil.rmtree(name, ignore_errors=True)
    model.save_pretrained(name, **save)
    tokenizer(f"{name}/tokenizer.json")
    with torch.no_grad():
        # Loaded anew, because .to(bfloat16) has rounded the RoPE frequencies too, which loading does not.
        # Grouped products of experts have no float64.
        eager = {"experts_implementation": "eager"} if "moe" in name or name == "mixtral" else {}
        fresh = type(model).from_pretrained(name, dtype=torch.float32, **eager).double()
        logits = fresh(torch.tensor([IDS])).logits[0]
    with open(f"{name}/logits.json", "w") as f:
        json.dump({"ids": IDS, "logits": [[round(v, 9) for v in row] for row in logits.tolist()]}, f)


common = dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
              num_key_value_heads=2, max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0)
make("llama", LlamaForCausalLM(LlamaConfig(**common, rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 500.0})), torch.float32)
make("qwen3", Qwen3ForCausalLM(Qwen3Config(**common, head_dim=16, tie_word_embeddings=True)), torch.bfloat16,
     max_shard_size="20KB")


# Smaller still, for what is special about each.
small = dict(vocab_size=64, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=1, max_position_embeddings=32, bos_token_id=1, eos_token_id=2, pad_token_id=0)


def scaled(name, **rope):
    make(name, LlamaForCausalLM(LlamaConfig(**small, tie_word_embeddings=True, rope_parameters={"rope_theta": 100.0, **rope})),
         torch.float32)


scaled("linear", rope_type="linear", factor=4.0)
scaled("yarn", rope_type="yarn", factor=4.0, original_max_position_embeddings=8, beta_fast=2.0, beta_slow=0.25)
scaled("longrope", rope_type="longrope", factor=4.0, original_max_position_embeddings=8,
       short_factor=[1.0, 1.0, 1.1, 1.2], long_factor=[1.0, 1.5, 2.5, 4.0])
scaled("llama3", rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
       original_max_position_embeddings=16)
make("mistral", MistralForCausalLM(MistralConfig(**small, head_dim=6, sliding_window=5)), torch.float16)
three = {**small, "num_hidden_layers": 3}
make("windows", Qwen3ForCausalLM(Qwen3Config(**three, head_dim=8, tie_word_embeddings=True, use_sliding_window=True, sliding_window=4,
     layer_types=["sliding_attention", "full_attention", "sliding_attention"])), torch.float32)
gpt2 = dict(vocab_size=64, n_embd=16, n_layer=2, n_head=2, n_positions=32, bos_token_id=1, eos_token_id=2, pad_token_id=0)
make("gpt2", GPT2LMHeadModel(GPT2Config(**gpt2)), torch.float32)
make("gpt2-untied", GPT2LMHeadModel(GPT2Config(**gpt2, n_inner=40, tie_word_embeddings=False, layer_norm_epsilon=1e-3)),
     torch.float16)
make("gemma2", Gemma2ForCausalLM(Gemma2Config(
    **three, head_dim=8, query_pre_attn_scalar=10, sliding_window=4, attn_logit_softcapping=0.5, final_logit_softcapping=20.0,
    layer_types=["sliding_attention", "full_attention", "sliding_attention"], attn_implementation="eager",
    rope_parameters={"rope_type": "default", "rope_theta": 100.0})), torch.bfloat16)
make("gemma3", Gemma3ForCausalLM(Gemma3TextConfig(
    **three, head_dim=8, query_pre_attn_scalar=10, sliding_window=4, final_logit_softcapping=20.0,
    layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    rope_parameters={"full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 100.0},
                     "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}})), torch.bfloat16)
make("qwen2", Qwen2ForCausalLM(Qwen2Config(
    **three, tie_word_embeddings=True, use_sliding_window=True, sliding_window=4, max_window_layers=2,
    rope_parameters={"rope_type": "default", "rope_theta": 500.0})), torch.bfloat16)
make("olmo2", Olmo2ForCausalLM(Olmo2Config(
    **{**small, "num_key_value_heads": 2}, tie_word_embeddings=False, rope_parameters={"rope_type": "default", "rope_theta": 500.0})),
     torch.float32)
make("phi3", Phi3ForCausalLM(Phi3Config(
    **small, sliding_window=5, original_max_position_embeddings=8,
    rope_scaling={"type": "longrope", "short_factor": [1.0, 1.0, 1.1, 1.2], "long_factor": [1.0, 1.5, 2.5, 4.0]})), torch.bfloat16)
make("mixtral", MixtralForCausalLM(MixtralConfig(
    **{**small, "intermediate_size": 12}, num_local_experts=4, num_experts_per_tok=2, sliding_window=None,
    rope_parameters={"rope_type": "default", "rope_theta": 500.0})), torch.float32)
make("qwen3_moe", Qwen3MoeForCausalLM(Qwen3MoeConfig(
    **small, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12, norm_topk_prob=True, decoder_sparse_step=1,
    mlp_only_layers=[], rope_parameters={"rope_type": "default", "rope_theta": 500.0})), torch.float32)

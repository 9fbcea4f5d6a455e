package io.cistern.benchmarks.figures;

import java.util.LinkedHashMap;
import java.util.Map;

/// Names for readers, by those in raw output.
final class Names {
    /// The recorded programs.
    static final Map<String, String> PROGRAMS = new LinkedHashMap<>();

    private static final Map<String, String> ALLOCATORS = Map.of(
            "caching", "`caching`",
            "async", "`async`",
            "caching:reuse=wait", "`caching:reuse=wait`",
            "caching:reuse=never", "`caching:reuse=never`",
            "torch", "PyTorch 2.11",
            "torch:expandable_segments:True", "PyTorch, expandable",
            "cudaMallocAsync", "`cudaMallocAsync` (C)");

    static {
        PROGRAMS.put("gpt2_train", "GPT-2 training");
        PROGRAMS.put("resnet_train", "ResNet-50 training");
        PROGRAMS.put("unet_train", "U-Net training");
        PROGRAMS.put("llama_generate", "Llama generation");
        PROGRAMS.put("vit_streams", "ViT on five streams");
        PROGRAMS.put("bert_streams", "BERT on four streams");
        PROGRAMS.put("gnn_sample", "GCN on sampled graphs");
        PROGRAMS.put("lora_finetune", "LoRA fine-tuning");
        PROGRAMS.put("speech_train", "Speech training");
        PROGRAMS.put("kv_serving", "Serving with key-value caches");
    }

    private Names() {}

    static String allocator(String spec) {
        return ALLOCATORS.getOrDefault(spec, spec);
    }
}

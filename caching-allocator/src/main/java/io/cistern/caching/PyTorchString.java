package io.cistern.caching;

import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.AllocatorSpec;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/// A string for PyTorch's `PYTORCH_ALLOC_CONF`, as the value of one option of a spec. A program
/// moves such a string here as a whole, so that keys of PyTorch's that mean nothing here are
/// warned of. A key that PyTorch has not is an error.
final class PyTorchString {
    /// PyTorch's name of the driver's pool.
    /// The option that has such a string.
    private static final String KEY = "pytorch";

    private static final String DRIVER_POOL = "cudaMallocAsync";

    /// About locks, and about address ranges, that there are not here, and about captures,
    /// which need no such choice.
    private static final Set<String> WITHOUT_EFFECT = Set.of(
            "release_lock_on_cudamalloc",
            "graph_capture_record_stream_reuse",
            "expandable_segments_reserve",
            "expandable_segments_reserve_by_class");

    /// About host memory.
    private static final String OF_PINNED_MEMORY = "pinned_";

    /// What was told, so that nothing is told again for each pool.
    private static final Set<String> TOLD = ConcurrentHashMap.newKeySet();

    private final AllocatorOptions options;
    private final boolean choosesDriverPool;

    private PyTorchString(AllocatorOptions options, List<String> withoutEffect) {
        this.options = options;
        choosesDriverPool = options.choice("backend", List.of("native", DRIVER_POOL))
                .filter(DRIVER_POOL::equals)
                .isPresent();
        warn(withoutEffect, "here");
    }

    /// The string in a spec, if it has one.
    ///
    /// @throws io.cistern.errors.ConfigurationException if it does not follow the grammar, or
    ///     PyTorch has no such backend
    static Optional<PyTorchString> of(AllocatorOptions spec) {
        Optional<AllocatorOptions> inner = spec.nested(KEY);
        if (inner.isEmpty()) {
            return Optional.empty();
        }
        List<String> withoutEffect = new ArrayList<>();
        for (String key : keys(spec)) {
            if (WITHOUT_EFFECT.contains(key) || key.startsWith(OF_PINNED_MEMORY)) {
                inner.get().list(key); // else it would be one that nobody asked for
                withoutEffect.add(key);
            }
        }
        return Optional.of(new PyTorchString(inner.get(), withoutEffect));
    }

    private static Set<String> keys(AllocatorOptions spec) {
        String text = String.join(",", spec.list(KEY).orElse(List.of()));
        return AllocatorSpec.parse(KEY + ":" + text).options().keySet();
    }

    AllocatorOptions options() {
        return options;
    }

    /// Whether it asks for the driver's pool in place of PyTorch's own allocator.
    boolean choosesDriverPool() {
        return choosesDriverPool;
    }

    /// Tells that keys have no effect.
    ///
    /// @param where for people
    static void warn(List<String> keys, String where) {
        String line = "caching: in the PyTorch string, without effect " + where + ": " + String.join(", ", keys);
        if (!keys.isEmpty() && TOLD.add(line)) {
            System.getLogger(PyTorchString.class.getName()).log(Level.WARNING, line);
        }
    }
}

package io.cistern.caching;

import io.cistern.caching.options.CachingOption;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.AllocatorSpec;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// Reads options from a spec. PyTorch's options are also read from a string for `PYTORCH_ALLOC_CONF`, given as
/// one option. Programs bring such a string as a whole, so PyTorch's keys without a meaning here cause a
/// warning. A key that PyTorch does not have is an error.
final class OptionReader {
    /// The key of the option with such a string.
    private static final String PYTORCH = "pytorch";

    /// PyTorch's name for the driver's pool.
    private static final String DRIVER_POOL = "cudaMallocAsync";

    /// Keys about locks, address ranges and captures, for which nothing has to be chosen here, and one of PyTorch 1.12
    /// to 2.0, for sizes that are not rounded.
    private static final Set<String> WITHOUT_EFFECT = Set.of(
            "release_lock_on_cudamalloc",
            "release_lock_on_hipmalloc",
            "roundup_bypass_threshold_mb",
            "graph_capture_record_stream_reuse",
            "expandable_segments_reserve",
            "expandable_segments_reserve_by_class");

    /// The prefix of keys about host memory.
    private static final String OF_PINNED_MEMORY = "pinned_";

    /// Warnings that were logged, so that each is logged once and not for each pool.
    private static final Set<String> TOLD = ConcurrentHashMap.newKeySet();

    private final AllocatorOptions own;
    private final @Nullable AllocatorOptions pytorch;
    private final boolean choosesDriverPool;

    /// Reads from a spec's options.
    ///
    /// @throws ConfigurationException if a PyTorch string among them does not follow the grammar, or names a
    ///     backend that PyTorch does not have
    OptionReader(AllocatorOptions options) {
        this.own = options;
        this.pytorch = options.nested(PYTORCH).orElse(null);
        List<String> withoutEffect = new ArrayList<>();
        if (pytorch != null) {
            for (String key : pytorchKeys()) {
                if (WITHOUT_EFFECT.contains(key) || key.startsWith(OF_PINNED_MEMORY)) {
                    pytorch.list(key); // else it would count as unread
                    withoutEffect.add(key);
                }
            }
        }
        this.choosesDriverPool = pytorch != null
                && pytorch.choice("backend", List.of("native", DRIVER_POOL))
                        .filter(DRIVER_POOL::equals)
                        .isPresent();
        warn(withoutEffect, "here");
    }

    private Set<String> pytorchKeys() {
        String text = String.join(",", own.list(PYTORCH).orElse(List.of()));
        return AllocatorSpec.parse(PYTORCH + ":" + text).options().keySet();
    }

    /// Warns that keys of PyTorch's have no effect.
    ///
    /// @param where the end of the message, for people
    static void warn(List<String> keys, String where) {
        String line = "caching: in the PyTorch string, without effect " + where + ": " + String.join(", ", keys);
        if (!keys.isEmpty() && TOLD.add(line)) {
            System.getLogger(OptionReader.class.getName()).log(Level.WARNING, line);
        }
    }

    /// Accepts a value that changes nothing in a PyTorch string, with a warning, as PyTorch accepts it.
    ///
    /// @throws ConfigurationException if it was given by itself
    void withoutEffect(CachingOption<?> option, String value) {
        if (option.read(own).isPresent()) {
            throw option.illegal(value);
        }
        warn(List.of(option.key()), "(" + value + ")");
    }

    /// Whether a PyTorch string asks for the driver's pool instead of PyTorch's own allocator.
    boolean choosesDriverPool() {
        return choosesDriverPool;
    }

    /// Returns the value of an option, or its default.
    <T> T value(CachingOption<T> option, T usual) {
        T value = value(option);
        return value != null ? value : usual;
    }

    /// Returns the key of the first given option, or null if none is given.
    @Nullable
    String firstGiven(List<CachingOption<?>> options) {
        return options.stream()
                .filter(option -> value(option) != null)
                .findFirst()
                .map(CachingOption::key)
                .orElse(null);
    }

    /// Returns the value of an option, or null.
    ///
    /// @throws ConfigurationException if the value is not legal, or is given in both places
    <T> @Nullable T value(CachingOption<T> option) {
        Optional<T> given = option.read(own);
        if (pytorch == null || !CachingOption.PYTORCH.contains(option)) {
            return given.orElse(null);
        }
        Optional<T> inner = option.read(pytorch);
        if (given.isPresent() && inner.isPresent()) {
            throw new ConfigurationException(
                    "caching: option '" + option + "' is given by itself and in the PyTorch string; give it once");
        }
        return given.or(() -> inner).orElse(null);
    }
}

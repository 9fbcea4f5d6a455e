package io.cistern.caching;

import io.cistern.caching.options.CachingOption;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.AllocatorSpec;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// Reads options from a spec. PyTorch's options are also read from a string for `PYTORCH_ALLOC_CONF`, given as one
/// option. Programs copy such a string as a whole, so PyTorch's keys without an effect here cause a warning that
/// says why. A key that PyTorch does not have is an error.
final class OptionReader {
    private static final String PYTORCH = "pytorch";

    /// PyTorch's name for the driver's pool.
    private static final String DRIVER_POOL = "cudaMallocAsync";

    private static final String BACKEND = "backend:" + DRIVER_POOL;

    /// The options that PyTorch itself follows with this backend.
    private static final List<CachingOption<?>> OF_LIMIT =
            List.of(CachingOption.PER_PROCESS_MEMORY_FRACTION, CachingOption.THROW_ON_CUDAMALLOC_OOM);

    private static final String SPLIT_FREELY = "blocks are split freely, since their pages go back one by one";

    private static final String NO_LOCK = "no lock of the whole allocator is held across a driver call";

    private static final String SIZES_FIT = "sizes need no rounding: pages under free blocks serve any size";

    private static final String GROWS_BY_PAGES = "address ranges are reserved as pages need them";

    /// Keys that have no effect here, with the reason.
    private static final Map<String, String> WITHOUT_EFFECT = Map.ofEntries(
            Map.entry("max_split_size_mb", SPLIT_FREELY),
            Map.entry("max_non_split_rounding_mb", SPLIT_FREELY),
            Map.entry("large_segment_size_mb", "page sizes adapt to the program"),
            Map.entry("roundup_power2_divisions", SIZES_FIT),
            Map.entry("roundup_bypass_threshold_mb", SIZES_FIT),
            Map.entry("garbage_collection_threshold", "idle pages serve any request before more memory is reserved"),
            Map.entry("release_lock_on_cudamalloc", NO_LOCK),
            Map.entry("release_lock_on_hipmalloc", NO_LOCK),
            Map.entry("graph_capture_record_stream_reuse", "memory in a capture is reused as the graph orders it"),
            Map.entry("expandable_segments_reserve", GROWS_BY_PAGES),
            Map.entry("expandable_segments_reserve_by_class", GROWS_BY_PAGES));

    /// The prefix of keys about host memory.
    private static final String OF_PINNED_MEMORY = "pinned_";

    /// Warnings that were logged, so that each is logged once and not for each pool.
    private static final Set<String> TOLD = ConcurrentHashMap.newKeySet();

    private final AllocatorOptions own;
    private final @Nullable AllocatorOptions pytorch;
    private final boolean choosesDriverPool;

    /// @throws ConfigurationException if the PyTorch string is malformed, or names a backend that PyTorch
    ///     does not have
    OptionReader(AllocatorOptions options) {
        this.own = options;
        this.pytorch = options.nested(PYTORCH).orElse(null);
        List<String> withoutEffect = new ArrayList<>();
        if (pytorch != null) {
            for (String key : pytorchKeys()) {
                String why = key.startsWith(OF_PINNED_MEMORY) ? "it concerns host memory" : WITHOUT_EFFECT.get(key);
                if (why != null) {
                    pytorch.list(key); // otherwise it would be rejected as unread
                    withoutEffect.add(key + " (" + why + ")");
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

    /// Warns that PyTorch keys have no effect.
    ///
    /// @param where the circumstances, for the end of the message
    static void warn(List<String> keys, String where) {
        String line = "caching: keys of the PyTorch string without effect " + where + ": " + String.join(", ", keys);
        if (!keys.isEmpty() && TOLD.add(line)) {
            System.getLogger(OptionReader.class.getName()).log(Level.WARNING, line);
        }
    }

    /// Accepts a value without effect in a PyTorch string, with a warning, as PyTorch does.
    ///
    /// @throws ConfigurationException if it was given outside the PyTorch string
    void withoutEffect(CachingOption<?> option, String value) {
        if (option.read(own).isPresent()) {
            throw option.illegal(value);
        }
        warn(List.of(option.key()), "(" + value + ")");
    }

    /// Returns `async` if a PyTorch string asks for the driver's pool instead of PyTorch's own allocator.
    /// Warns about options of PyTorch's own allocator, as PyTorch does.
    ///
    /// @throws ConfigurationException if an option asks for something that `async` lacks
    Optional<AllocatorSpec> otherBackend() {
        if (!choosesDriverPool) {
            return Optional.empty();
        }
        requireNone(OF_LIMIT, "set cistern.limit, or leave one of them out");
        requireNone(CachingOption.OWN, "it is the allocator 'async', with options of its own");
        warn(
                CachingOption.PYTORCH.stream()
                        .filter(option -> value(option) != null)
                        .map(CachingOption::key)
                        .toList(),
                "with " + BACKEND);
        return Optional.of(AllocatorSpec.parse("async"));
    }

    private void requireNone(List<CachingOption<?>> options, String wayOut) {
        String given = firstGiven(options);
        if (given != null) {
            throw new ConfigurationException("caching: " + given + " contradicts " + BACKEND + ": " + wayOut);
        }
    }

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

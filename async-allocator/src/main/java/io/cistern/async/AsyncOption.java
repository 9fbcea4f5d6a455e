package io.cistern.async;

import io.cistern.cuda.HandleType;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.SpecOption;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;

/// One option of `async` and of the segment source `driver_pool`: its key, legal values and meaning.
/// Specs, code, messages and the reference table all use this declaration.
///
/// @param <T> the type of its value
public final class AsyncOption<T> extends SpecOption<T> {
    /// Chooses the driver's pool that memory comes from.
    public static final AsyncOption<PoolChoice> POOL = new AsyncOption<>(
            "pool",
            "`own`, `default`, `current`, a handle `0x…`, or a list of handles, one per device",
            "`own`",
            "the driver's pool: a new one; the device's default; the one that is current at the first"
                    + " request; or the program's own. Options change an existing pool until `async` closes",
            AsyncOption::pool,
            PoolChoice::texts);

    /// Gives each stream a pool of its own.
    public static final AsyncOption<Boolean> PER_STREAM = flag(
            "per_stream",
            FLAG + "; `true` only with `pool=own`",
            "`false`",
            "whether each stream has its own pool; a new stream takes over the pool of one that ended");

    /// Sets how many bytes a pool keeps when the host synchronises.
    public static final AsyncOption<ReleaseThreshold> RELEASE_THRESHOLD = new AsyncOption<>(
            "release_threshold",
            "`keep_all`, `zero`, bytes, a share of the device such as `0.3`, `adaptive`; `adaptive` only with"
                    + " `pool=own`",
            "`keep_all` for own pools, and for a default pool without a threshold; `zero` under"
                    + " `driver_pool`; else the pool's own",
            "the bytes that a pool keeps when the host synchronises; `adaptive` keeps what the program will need again",
            ReleaseThreshold::read,
            threshold -> List.of(threshold.text()));

    /// Allows reuse by a stream that waited, through events, for the stream of the free.
    public static final AsyncOption<Boolean> REUSE_FOLLOW_EVENT_DEPENDENCIES = flag(
            "reuse_follow_event_dependencies",
            FLAG,
            "`true` for own pools; else the pool's own",
            "whether freed memory serves a stream that waited for the free by events");

    /// Allows reuse of memory whose free has completed.
    public static final AsyncOption<Boolean> REUSE_ALLOW_OPPORTUNISTIC = flag(
            "reuse_allow_opportunistic",
            FLAG,
            "`true` for own pools; else the pool's own",
            "whether freed memory serves any stream once the free has completed; `false` makes placement"
                    + " independent of timing");

    /// Allows the driver to insert waits between streams.
    public static final AsyncOption<Boolean> REUSE_ALLOW_INTERNAL_DEPENDENCIES = flag(
            "reuse_allow_internal_dependencies",
            FLAG,
            "`true` for own pools; else the pool's own",
            "whether the driver may make a stream wait for another stream's free when the pool can't grow");

    /// Limits the bytes that each pool reserves.
    public static final AsyncOption<Long> MAX_SIZE = new AsyncOption<>(
            "max_size",
            "bytes, at least 1; only with `pool=own`",
            "the driver's own limit",
            "the maximum reserved bytes of each pool, rounded up to whole pages (32 MiB on an H200)",
            AsyncOption::positiveBytes,
            SpecOption::text);

    /// Lists how pools can be exported to other processes.
    public static final AsyncOption<List<HandleType>> HANDLE_TYPES = new AsyncOption<>(
            "handle_types",
            "`none`, `posix_fd`, `fabric`, or a list of the last two; only with `pool=own`",
            "`none`",
            "how the pools can be exported to other processes",
            AsyncOption::handleTypes,
            types -> types.stream().map(HandleType::word).toList());

    /// Chooses where the memory of own pools lives.
    public static final AsyncOption<PoolLocation> LOCATION = new AsyncOption<>(
            "location",
            "`device`, `managed`, `host`, `host_numa`, `host_numa:N`; only with `pool=own`",
            "`device`",
            "where the memory is; `managed`: where each page was last used (CUDA 13.0); `host_numa`: on the"
                    + " host's nearest NUMA node",
            AsyncOption::location,
            SpecOption::text);

    /// Lets the decompression engine write to the memory.
    public static final AsyncOption<Boolean> HARDWARE_DECOMPRESS = flag(
            "hardware_decompress",
            FLAG + "; `true` only with `pool=own` and `location=device`",
            "`false`",
            "whether the device's decompression engine may write to the memory");

    /// Gives small blocks a pool of their own, up to this many bytes.
    public static final AsyncOption<Long> SMALL_POOL = new AsyncOption<>(
            "small_pool",
            "bytes, at least 1; not with `per_stream=true`, only with `pool=own`",
            "no such pool",
            "blocks up to this size come from a second pool, so that pages of large blocks can go back to the driver",
            AsyncOption::positiveBytes,
            SpecOption::text);

    /// Sets how many bytes each pool obtains when it is first used.
    public static final AsyncOption<Long> INITIAL_SIZE = new AsyncOption<>(
            "initial_size",
            "bytes, at least 1; at most `max_size` and `release_threshold`",
            "nothing",
            "the bytes that each pool, except that of small blocks, obtains at its first use and keeps",
            AsyncOption::positiveBytes,
            SpecOption::text);

    /// All options, in the order of the reference.
    public static final List<AsyncOption<?>> ALL = List.of(
            POOL,
            PER_STREAM,
            RELEASE_THRESHOLD,
            REUSE_FOLLOW_EVENT_DEPENDENCIES,
            REUSE_ALLOW_OPPORTUNISTIC,
            REUSE_ALLOW_INTERNAL_DEPENDENCIES,
            MAX_SIZE,
            HANDLE_TYPES,
            LOCATION,
            HARDWARE_DECOMPRESS,
            SMALL_POOL,
            INITIAL_SIZE);

    /// Options that describe a new pool.
    static final List<AsyncOption<?>> OF_OWN_POOLS =
            List.of(PER_STREAM, MAX_SIZE, HANDLE_TYPES, LOCATION, HARDWARE_DECOMPRESS, SMALL_POOL);

    private AsyncOption(
            String key,
            String legal,
            String usual,
            String meaning,
            Reader<T> reader,
            Function<T, List<String>> writer) {
        super("async", key, legal, usual, meaning, reader, writer);
    }

    private static AsyncOption<Boolean> flag(String key, String legal, String usual, String meaning) {
        return new AsyncOption<>(key, legal, usual, meaning, YES_OR_NO, SpecOption::text);
    }

    private static Optional<Long> positiveBytes(AllocatorOptions options, String key) {
        Optional<Long> bytes = options.bytes(key);
        if (bytes.isPresent() && bytes.get() == 0) {
            throw new ConfigurationException("option '" + key + "' of 'async': 0 is invalid");
        }
        return bytes;
    }

    private static Optional<PoolChoice> pool(AllocatorOptions options, String key) {
        return options.list(key).map(texts -> PoolChoice.parse(texts).orElseThrow(() -> POOL.illegal(texts)));
    }

    private static Optional<PoolLocation> location(AllocatorOptions options, String key) {
        return options.text(key).map(text -> PoolLocation.parse(text).orElseThrow(() -> LOCATION.illegal(text)));
    }

    private static Optional<List<HandleType>> handleTypes(AllocatorOptions options, String key) {
        return options.list(key).map(words -> {
            if (words.equals(List.of("none"))) {
                return List.of();
            }
            return words.stream()
                    .map(word -> handleType(word, words))
                    .distinct()
                    .toList();
        });
    }

    private static HandleType handleType(String word, List<String> words) {
        for (HandleType type : List.of(HandleType.POSIX_FILE_DESCRIPTOR, HandleType.FABRIC)) {
            if (type.word().equals(word)) {
                return type;
            }
        }
        throw HANDLE_TYPES.illegal(words);
    }
}

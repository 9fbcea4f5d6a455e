package io.cistern.async;

import io.cistern.cuda.MemoryPools;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;

/// Which of the driver's pools an allocator takes memory from. Immutable.
///
/// A pool that is not its own is never destroyed, and keeps its settings but for those that options name; these
/// are set back when the allocator closes.
public final class PoolChoice {
    /// A new pool for each device, which nobody else knows.
    public static final PoolChoice OWN = new PoolChoice("own", null, List.of());

    /// The pool that each device has from the start (`cuDeviceGetDefaultMemPool`).
    public static final PoolChoice DEFAULT = new PoolChoice("default", MemoryPools::defaultPool, List.of());

    /// The pool that `cuMemAllocAsync` takes from on a device when the allocator first serves it
    /// (`cuDeviceGetMemPool`).
    public static final PoolChoice CURRENT = new PoolChoice("current", MemoryPools::currentPool, List.of());

    private static final String HANDLE = "0x";
    private static final int MAX_DIGITS = 16;

    private final String word;
    private final @Nullable BiFunction<MemoryPools, Integer, Long> lookUp;
    private final List<Long> handles;

    private PoolChoice(String word, @Nullable BiFunction<MemoryPools, Integer, Long> lookUp, List<Long> handles) {
        this.word = word;
        this.lookUp = lookUp;
        this.handles = handles;
    }

    /// Pools that somebody else made, one a device in the order of the devices; devices beyond have none, and
    /// can't be served. The handles must be those of pools that outlive the allocator: the driver can't be asked.
    ///
    /// @throws IllegalArgumentException if there is none, or one is 0
    public static PoolChoice handles(long... handles) {
        if (handles.length == 0 || Arrays.stream(handles).anyMatch(handle -> handle == 0)) {
            throw new IllegalArgumentException("a pool's handle is never 0, and there must be one");
        }
        return new PoolChoice("", null, Arrays.stream(handles).boxed().toList());
    }

    /// Reads `own`, `default`, `current`, or handles such as `0x7f00a0`; empty if it is none of them.
    static Optional<PoolChoice> parse(List<String> texts) {
        for (PoolChoice named : List.of(OWN, DEFAULT, CURRENT)) {
            if (texts.equals(List.of(named.word))) {
                return Optional.of(named);
            }
        }
        long[] handles = texts.stream().mapToLong(PoolChoice::handle).toArray();
        return handles.length == 0 || Arrays.stream(handles).anyMatch(handle -> handle == 0)
                ? Optional.empty()
                : Optional.of(handles(handles));
    }

    /// 0 if it is no handle.
    private static long handle(String text) {
        String digits = text.startsWith(HANDLE) ? text.substring(HANDLE.length()) : "";
        boolean number = !digits.isEmpty()
                && digits.length() <= MAX_DIGITS
                && digits.chars().allMatch(HexFormat::isHexDigit);
        return number ? HexFormat.fromHexDigitsToLong(digits) : 0;
    }

    /// Whether it is a pool of the allocator's own.
    boolean own() {
        return this == OWN;
    }

    /// The pool of a device.
    ///
    /// @return 0 if there is none for it; not for [#OWN]
    long of(MemoryPools pools, int device) {
        if (lookUp != null) {
            return lookUp.apply(pools, device);
        }
        return device < handles.size() ? handles.get(device) : 0;
    }

    /// As a spec has it.
    List<String> texts() {
        return handles.isEmpty()
                ? List.of(word)
                : handles.stream()
                        .map(handle -> HANDLE + Long.toHexString(handle))
                        .toList();
    }

    /// `own`, `default`, `current`, or the handles.
    @Override
    public String toString() {
        return String.join(",", texts());
    }
}

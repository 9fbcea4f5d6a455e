package io.cistern.async;

import io.cistern.cuda.MemoryPools;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;

/// Chooses the driver's pool from which an allocator takes memory. Immutable.
///
/// The allocator never destroys a pool that is not its own. In such a pool it changes only the settings
/// that options name and, in a default pool, a release threshold of 0. It restores these settings when
/// it closes.
public final class PoolChoice {
    /// A new pool for each device, which only the allocator uses.
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

    /// Returns a choice of pools that the program created: one handle per device, in the order of the devices.
    /// The allocator can't serve devices beyond the list. The pools must outlive the allocator. The driver
    /// can't check whether a handle is valid.
    ///
    /// @param handles at least one, none of them 0
    /// @throws IllegalArgumentException if there is no handle or one is 0
    public static PoolChoice handles(long... handles) {
        if (handles.length == 0 || Arrays.stream(handles).anyMatch(handle -> handle == 0)) {
            throw new IllegalArgumentException("at least one pool handle is needed, and none may be 0");
        }
        return new PoolChoice("", null, Arrays.stream(handles).boxed().toList());
    }

    /// Reads `own`, `default`, `current`, or handles such as `0x7f00a0`; returns empty for anything else.
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

    /// Returns the handle that a text stands for, or 0 if it is not a handle.
    private static long handle(String text) {
        String digits = text.startsWith(HANDLE) ? text.substring(HANDLE.length()) : "";
        boolean number = !digits.isEmpty()
                && digits.length() <= MAX_DIGITS
                && digits.chars().allMatch(HexFormat::isHexDigit);
        return number ? HexFormat.fromHexDigitsToLong(digits) : 0;
    }

    /// Returns whether it is a pool of the allocator's own.
    boolean own() {
        return this == OWN;
    }

    /// Returns the handle of the pool of a device; not for [#OWN].
    ///
    /// @return the handle, or 0 if the choice has no pool for the device
    long of(MemoryPools pools, int device) {
        if (lookUp != null) {
            return lookUp.apply(pools, device);
        }
        return device < handles.size() ? handles.get(device) : 0;
    }

    /// Returns the values as a spec writes them.
    List<String> texts() {
        return handles.isEmpty()
                ? List.of(word)
                : handles.stream()
                        .map(handle -> HANDLE + Long.toHexString(handle))
                        .toList();
    }

    /// Returns `own`, `default`, `current`, or the handles, separated by commas.
    @Override
    public String toString() {
        return String.join(",", texts());
    }
}

package io.cistern.cli.refusals;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// What a spec says about the memory that its allocator takes from the driver.
///
/// @param cap the option that limits it, as a refusal has to say; empty if none does
/// @param capBytes the most bytes
/// @param pageBytes the least that it takes at once
/// @param unitBytes what the sizes of blocks are multiples of; 0 if a free run may have to stay whole
/// @param onDevice whether its memory is the device's
public record Cap(String cap, long capBytes, long pageBytes, long unitBytes, boolean onDevice) {
    private static final Pattern BYTES = Pattern.compile("(max_bytes|max_size|limit:bytes)=(\\d+)(MiB)?");
    private static final Pattern FRACTION = Pattern.compile("per_process_memory_fraction=([0-9.]+)");
    private static final Pattern PAGE = Pattern.compile("page_size=(\\d+)MiB");
    private static final Pattern ALIGNMENT = Pattern.compile("alignment=(\\d+)");
    private static final Pattern WHOLE = Pattern.compile("splits=false|limit:|aligned:|symmetric");
    private static final long PAGE_BYTES = 2 << 20;
    private static final long SMALL_BYTES = 64 << 10;

    /// The driver's pools take whole pages of this size.
    private static final long POOL_PAGE_BYTES = 32 << 20;

    public static Cap of(String spec, long capacityBytes) {
        Matcher bytes = BYTES.matcher(spec);
        Matcher fraction = FRACTION.matcher(spec);
        String cap = "";
        long capBytes = Long.MAX_VALUE;
        if (bytes.find()) {
            cap = bytes.group(1).startsWith("limit") ? "limit of" : bytes.group(1);
            capBytes = Long.parseLong(bytes.group(2)) << (bytes.group(3) == null ? 0 : 20);
        } else if (fraction.find()) {
            cap = "per_process_memory_fraction";
            capBytes = (long) (capacityBytes * Double.parseDouble(fraction.group(1)));
        }
        return new Cap(
                cap,
                capBytes,
                pageBytes(spec),
                WHOLE.matcher(spec).find() ? 0 : number(ALIGNMENT, spec, 512),
                !spec.contains("managed") && !spec.contains("location="));
    }

    /// Returns the bytes of a free run that a request needs; 0 if a free run may have to stay whole. Small blocks
    /// have eight sizes a doubling.
    long blockBytes(long byteSize) {
        long step = byteSize <= SMALL_BYTES ? Long.highestOneBit(Math.max(1, byteSize - 1)) >> 3 : 0;
        return unitBytes == 0 ? 0 : RefusalOracle.roundUp(byteSize, Math.max(unitBytes, step));
    }

    private static long pageBytes(String spec) {
        boolean ofPools = spec.contains("async") || spec.contains("driver_pool");
        return ofPools ? POOL_PAGE_BYTES : Math.max(PAGE_BYTES, number(PAGE, spec, 0) << 20);
    }

    private static long number(Pattern pattern, String spec, long otherwise) {
        Matcher found = pattern.matcher(spec);
        return found.find() ? Long.parseLong(found.group(1)) : otherwise;
    }
}

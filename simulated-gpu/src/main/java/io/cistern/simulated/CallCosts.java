package io.cistern.simulated;

import io.cistern.cuda.DriverCall;
import java.util.EnumMap;
import java.util.Map;

/// The virtual time that calls and device work take.
///
/// @param calls the host time of each call; a call that is missing costs nothing
/// @param fillBytesPerNano speed of fills, in bytes per nanosecond
/// @param copyBytesPerNano speed of copies inside a device, in bytes copied per nanosecond
/// @param hostLinkBytesPerNano speed of copies between host and device, in bytes per nanosecond
/// @param peerLinkBytesPerNano speed of copies between devices, in bytes per nanosecond
/// @param deviceLatencyNanos fixed time of each piece of device work, in nanoseconds, added to the time for its
///     bytes
public record CallCosts(
        Map<DriverCall, Cost> calls,
        double fillBytesPerNano,
        double copyBytesPerNano,
        double hostLinkBytesPerNano,
        double peerLinkBytesPerNano,
        long deviceLatencyNanos) {
    /// Copies the map.
    public CallCosts {
        calls = Map.copyOf(calls);
    }

    /// The cost of one call.
    ///
    /// @param nanos fixed time of the call, in nanoseconds
    /// @param nanosPerMib additional nanoseconds for each MiB that the call creates, releases, maps, unmaps or
    ///     registers
    public record Cost(long nanos, double nanosPerMib) {}

    /// Returns costs in which calls take no host time: only device work advances the clock.
    public static CallCosts free() {
        return new CallCosts(Map.of(), 4000, 2000, 55, 400, 2000);
    }

    /// Returns the costs on an H200 with driver 580: the median times of single calls on an idle device. In
    /// addition, calls of pools and `cuMemAlloc` take time for the pages and chunks that they map or unmap.
    public static CallCosts h200() {
        Map<DriverCall, Cost> calls = new EnumMap<>(DriverCall.class);
        memory(calls);
        virtualMemory(calls);
        order(calls);
        put(calls, 3_500, DriverCall.MEMCPY_DTOD_ASYNC, DriverCall.MEMCPY_PEER_ASYNC, DriverCall.MEMCPY_BATCH_ASYNC);
        put(calls, 2_000, DriverCall.MEMCPY_HTOD_ASYNC, DriverCall.MEMCPY_DTOH_ASYNC, DriverCall.MEMCPY_2D_ASYNC);
        put(calls, 3_100, DriverCall.MEMSET_D8_ASYNC, DriverCall.MEMSET_D16_ASYNC, DriverCall.MEMSET_D32_ASYNC);
        put(calls, 2_900, DriverCall.LAUNCH_KERNEL);
        put(calls, 1_920, DriverCall.LAUNCH_HOST_FUNC);
        return new CallCosts(calls, 4000, 1900, 55, 380, 2000);
    }

    private static void memory(Map<DriverCall, Cost> calls) {
        put(calls, 970, DriverCall.MEM_ALLOC, DriverCall.MEM_FREE);
        put(calls, 4_000, DriverCall.MEM_GET_INFO);
        put(calls, 90, DriverCall.MEM_GET_ADDRESS_RANGE, DriverCall.POINTER_GET_ATTRIBUTE);
        calls.put(DriverCall.MEM_HOST_ALLOC, new Cost(480_000, 0));
        calls.put(DriverCall.MEM_FREE_HOST, new Cost(205_000, 0));
        calls.put(DriverCall.MEM_HOST_REGISTER, new Cost(100_000, 2_500_000 / 1024.0));
        put(calls, 273, DriverCall.MEM_ALLOC_ASYNC, DriverCall.MEM_ALLOC_FROM_POOL_ASYNC);
        put(calls, 367, DriverCall.MEM_FREE_ASYNC);
        put(calls, 20_700, DriverCall.MEM_POOL_CREATE);
        put(calls, 4_500, DriverCall.MEM_POOL_DESTROY);
        put(
                calls,
                66,
                DriverCall.MEM_POOL_TRIM_TO,
                DriverCall.MEM_POOL_GET_ATTRIBUTE,
                DriverCall.MEM_POOL_SET_ATTRIBUTE,
                DriverCall.DEVICE_GET_ATTRIBUTE);
    }

    private static void virtualMemory(Map<DriverCall, Cost> calls) {
        put(calls, 400, DriverCall.MEM_ADDRESS_RESERVE);
        put(calls, 330, DriverCall.MEM_ADDRESS_FREE);
        calls.put(DriverCall.MEM_CREATE, new Cost(7_500, 80));
        calls.put(DriverCall.MEM_RELEASE, new Cost(8_000, 520));
        put(calls, 460, DriverCall.MEM_MAP);
        calls.put(DriverCall.MEM_SET_ACCESS, new Cost(19_700, 45));
        calls.put(DriverCall.MEM_UNMAP, new Cost(13_900, 15));
    }

    private static void order(Map<DriverCall, Cost> calls) {
        put(calls, 134, DriverCall.EVENT_CREATE);
        put(calls, 97, DriverCall.EVENT_DESTROY);
        put(calls, 231, DriverCall.EVENT_RECORD, DriverCall.CONTEXT_RECORD_EVENT);
        put(calls, 147, DriverCall.EVENT_QUERY, DriverCall.STREAM_WAIT_EVENT);
        put(calls, 327, DriverCall.EVENT_SYNCHRONIZE, DriverCall.STREAM_SYNCHRONIZE);
        put(calls, 450, DriverCall.CONTEXT_SYNCHRONIZE);
        put(calls, 1_600, DriverCall.STREAM_CREATE, DriverCall.STREAM_CREATE_WITH_PRIORITY);
        put(calls, 1_180, DriverCall.STREAM_DESTROY);
        put(calls, 190, DriverCall.STREAM_QUERY);
        put(calls, 44, DriverCall.STREAM_GET_ID, DriverCall.STREAM_GET_FLAGS);
    }

    private static void put(Map<DriverCall, Cost> calls, long nanos, DriverCall... named) {
        for (DriverCall call : named) {
            calls.put(call, new Cost(nanos, 0));
        }
    }

    long nanos(DriverCall call) {
        Cost cost = calls.get(call);
        return cost == null ? 0 : cost.nanos();
    }

    long nanosForBytes(DriverCall call, long byteSize) {
        Cost cost = calls.get(call);
        return cost == null ? 0 : (long) (cost.nanosPerMib() * byteSize / (1 << 20));
    }

    /// Returns the time to map a chunk for `cuMemAlloc`, besides the call itself.
    long chunkNanos() {
        return calls.isEmpty() ? 0 : 29_000;
    }

    /// Returns the time to unmap a chunk for `cuMemFree`, besides the call itself.
    long chunkReleaseNanos(long byteSize) {
        return calls.isEmpty() ? 0 : 26_000 + byteSize / (1 << 20) * 250;
    }

    long poolPageNanos() {
        return calls.isEmpty() ? 0 : 33_000;
    }

    long poolPageReleaseNanos() {
        return calls.isEmpty() ? 0 : 43_000;
    }
}

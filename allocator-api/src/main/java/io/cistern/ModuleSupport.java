package io.cistern;

import io.cistern.diagnostics.LeakLevel;
import io.cistern.errors.MemoryAsleepException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.internal.names.Failures;
import io.cistern.internal.order.EventStreams;
import io.cistern.internal.routing.BlockUses;
import io.cistern.internal.routing.Router;
import io.cistern.spi.StreamOrder;
import java.util.Optional;
import java.util.function.Function;

/// What modules that build on a [DeviceMemory] need and programs rarely do: objects that they keep with it,
/// and calls on behalf of buffers. Reached by [DeviceMemory#moduleSupport].
///
/// **Threads.** Any thread may call any method at any time.
public final class ModuleSupport {
    private final DeviceMemory memory;
    private final Router router;
    private final Pools pools;
    private final BlockUses uses;
    private final StreamOrder streams;
    private final EventStreams eventStreams;
    private final LeakLevel leakLevel;
    private final Attachments attachments = new Attachments();

    ModuleSupport(
            DeviceMemory memory,
            Pools pools,
            BlockUses uses,
            StreamOrder streams,
            EventStreams eventStreams,
            LeakLevel leakLevel) {
        this.memory = memory;
        this.router = memory.router();
        this.pools = pools;
        this.uses = uses;
        this.streams = streams;
        this.eventStreams = eventStreams;
        this.leakLevel = leakLevel;
    }

    /// Returns the object of a type that belongs to the device memory: what another module keeps for it. The
    /// first call makes it. If it is [AutoCloseable], [DeviceMemory#close] closes it, after all allocators.
    ///
    /// @param opening makes the object; called under a lock, so it must not wait for other threads
    public <T> T attachment(Class<T> type, Function<? super DeviceMemory, ? extends T> opening) {
        return attachments.get(type, () -> opening.apply(memory));
    }

    /// Returns what belongs to the device memory and has an ability, the last that was
    /// [attached][#attachment].
    public <T> Optional<T> attached(Class<T> ability) {
        return attachments.find(ability);
    }

    /// Returns the order between streams that the device memory itself has, until it is closed.
    public StreamOrder streams() {
        return streams;
    }

    /// Returns how much is kept about live blocks.
    public LeakLevel leakLevel() {
        return leakLevel;
    }

    /// Records uses of a block on another stream, as [DeviceMemory#recordUse], that are over when an event
    /// of the program has passed.
    ///
    /// @param address what an allocation returned; 0 does nothing
    /// @param event a `CUevent` of any device; what it recorded until now counts
    /// @throws UnknownAddressException if no live block begins there
    /// @throws io.cistern.cuda.CudaException if the driver refuses the event
    public void recordUseUntil(long address, long event) {
        if (address != 0) {
            uses.recordUse(address, eventStreams.after(router.deviceOf(address), event));
        }
    }

    /// Throws if a block is asleep, for code that is about to use a bare address: what a
    /// `DeviceBuffer` asks of itself.
    ///
    /// @param address where a block begins; anything else is awake
    /// @throws MemoryAsleepException if its pool [sleeps][MemoryPool#sleep]
    public void requireAwake(long address) {
        if (pools.anyAsleep) {
            router.requireAwake(address);
        }
    }

    /// Returns whether any pool is asleep, which is seldom: so that code which has to look for a block only
    /// to [require][#requireAwake] that it is awake need not look at other times.
    public boolean isAnyAsleep() {
        return pools.anyAsleep;
    }

    void close(Failures failures) {
        attachments.close(failures);
    }
}

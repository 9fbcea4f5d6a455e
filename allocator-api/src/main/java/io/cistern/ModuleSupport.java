package io.cistern;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.errors.MemoryAsleepException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.internal.leaks.Leaks;
import io.cistern.internal.names.Failures;
import io.cistern.internal.options.SpecProblems;
import io.cistern.internal.routing.Router;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;

/// Serves modules that build on a [DeviceMemory]; programs rarely need this class.
/// [DeviceMemory#moduleSupport] returns this object.
///
/// **Threads.** Any thread may call any method at any time.
public final class ModuleSupport {
    /// Observes each device memory that is opened while the setting `cistern.observe` names the observer.
    /// The setting `cistern.check=streams` also starts the observer `streams`. [java.util.ServiceLoader]
    /// finds observers.
    public interface Observer {
        /// Returns the observer's name in the setting `cistern.observe`.
        String name();

        /// Returns the driver that a device memory uses instead of the given one. An observer that watches
        /// driver calls returns a driver that forwards calls to the given one. The framework calls this
        /// method before [#observe], and treats exceptions in the same way.
        ///
        /// @param driver the driver that the program gave
        default CudaDriver around(CudaDriver driver) {
            return driver;
        }

        /// Begins to observe a device memory, before the program gets it and until it is closed. Exceptions
        /// are logged and change nothing for the program, with one exception: after an
        /// [io.cistern.cuda.settings.IllegalSettingException], the device memory is not opened.
        ///
        /// @param memory the device memory, which was opened just now
        void observe(DeviceMemory memory);
    }

    private final DeviceMemory memory;
    private final LeakLevel leakLevel;
    private final Map<String, String> settings;
    private final Attachments attachments = new Attachments();

    ModuleSupport(DeviceMemory memory, LeakLevel leakLevel, Map<String, String> settings) {
        this.memory = memory;
        this.leakLevel = leakLevel;
        this.settings = Map.copyOf(settings);
    }

    /// Returns a human-readable line for each unknown name, unknown option and illegal value in an
    /// allocator's spec. Opens nothing.
    public static List<String> problemsOfSpec(String spec, Catalog catalog) {
        return SpecProblems.of(spec, catalog);
    }

    /// Returns the errors in a value of the setting `cistern.observe`, one line for each unknown name.
    ///
    /// @param names names of observers, separated by commas
    public static List<String> problemsOfObservers(String names) {
        return NamedObservers.problems(names);
    }

    /// Lets an integration report live blocks at the end of the process. Without this call, a shutdown hook
    /// of the JVM reports them, possibly while other hooks still free their blocks.
    ///
    /// @param atEnd receives an action that reports to standard error, and must run the action at the end
    ///     of the process. Only the first call in a process uses `atEnd`
    public static void reportLeaksBy(Consumer<Runnable> atEnd) {
        Leaks.reportBy(atEnd);
    }

    /// Returns the process's own device memory if the program has already asked for it. This is for
    /// integrations that must not open a driver if the program uses none.
    public static Optional<DeviceMemory> systemIfOpen() {
        return Optional.ofNullable(SystemDeviceMemory.Opened.memory);
    }

    /// Returns the object of a type that a module keeps with the device memory. The first call creates the
    /// object. If it is [AutoCloseable], [DeviceMemory#close] closes it, after all allocators.
    ///
    /// @param opening creates the object; called under a lock, so it must not wait for other threads
    public <T> T attachment(Class<T> type, Function<? super DeviceMemory, ? extends T> opening) {
        return attachments.get(type, () -> opening.apply(memory));
    }

    /// Returns the [attached][#attachment] object that is an instance of a type; the last one attached if
    /// there are several, empty if there is none.
    public <T> Optional<T> attached(Class<T> ability) {
        return attachments.find(ability);
    }

    /// Returns the object that records fences and orders streams, for use until the device memory is
    /// closed.
    public StreamOrder streams() {
        return memory.order;
    }

    /// Returns the settings by key, as they were when the builder of the device memory was created, even
    /// those that the program has overridden in the builder.
    public Map<String, String> settings() {
        return settings;
    }

    /// Returns how much the device memory records about live blocks.
    public LeakLevel leakLevel() {
        return leakLevel;
    }

    /// Returns the bytes of a device's buffers that were dropped without being closed; always 0 at a
    /// [level][LeakLevel] that does not watch buffers. Unlike [DeviceMemory#liveBlocks], this method resolves no
    /// call stacks, which would take time and memory for each live block.
    public long droppedBytes(int device) {
        return memory.leaks.droppedBytes(device);
    }

    /// Records uses of a block on another stream, as [DeviceMemory#recordUse] does. The uses count as
    /// finished once the given event completes.
    ///
    /// @param address an address that an allocation returned; 0 does nothing
    /// @param event a `CUevent` of any device; its most recent recording counts
    /// @throws UnknownAddressException if no live block begins there
    /// @throws io.cistern.cuda.CudaException if the driver refuses the event
    public void recordUseUntil(long address, long event) {
        if (address != 0) {
            memory.uses.recordUse(address, memory.eventStreams.after(memory.router.deviceOf(address), event));
        }
    }

    /// Returns whether a live block begins at an address. A block that the program has freed and that only
    /// a graph keeps is not live. So after a free has thrown, this method shows whether the free can be
    /// repeated.
    public boolean isLive(long address) {
        return memory.router.isLive(address);
    }

    /// Throws an exception if a block is asleep. A `DeviceBuffer` checks this itself; code that uses bare
    /// addresses should call this method first.
    ///
    /// @param address the address at which a block begins; other addresses count as awake
    /// @throws MemoryAsleepException if the block's pool [sleeps][MemoryPool#sleep]
    public void requireAwake(long address) {
        if (memory.pools().anyAsleep) {
            memory.router.requireAwake(address);
        }
    }

    /// Returns whether any pool is asleep, which is rare. Only then does code need to look up a block's
    /// address and call [#requireAwake].
    public boolean isAnyAsleep() {
        return memory.pools().anyAsleep;
    }

    /// Returns whether a stream is being captured into a graph. This method asks the driver only while a
    /// capture on the device is under way, so at all other times a call costs next to nothing.
    ///
    /// @return true if the stream is being captured, or if the driver doesn't report whether it is
    public boolean isCaptured(int device, long stream) {
        return memory.captures.isCaptured(device, stream);
    }

    /// Throws an exception if a stream is the per-thread default stream and the caller is a virtual thread,
    /// which may move to another OS thread.
    ///
    /// @throws io.cistern.errors.UnusableStreamException in that case
    public void refuseThreadStream(int device, long stream) {
        Router.refuseThreadStream(device, stream);
    }

    /// Returns whether any stream of a device is being captured. During captures the driver refuses to wait
    /// for all work of the device.
    public boolean isCapturing(int device) {
        return memory.captures.isOn(device);
    }

    /// Frees a block after all work enqueued so far on its device, for code that doesn't know which streams
    /// use the block.
    ///
    /// @param address an address that an allocation returned; 0 does nothing
    /// @throws UnknownAddressException if no live block begins there
    /// @throws io.cistern.cuda.CudaException if the driver still refuses after a few attempts; the block is
    ///     alive then
    public void freeBehindAll(long address) {
        if (address != 0) {
            memory.free(address, streamBehindAll(memory.router.deviceOf(address)));
        }
    }

    /// Returns a stream that has been made to wait for all work enqueued so far on a device, for freeing
    /// memory whose own stream has ended.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver still refuses after a few attempts, as it does
    ///     during captures
    public long streamBehindAll(int device) {
        for (int tries = 1; ; tries++) {
            try {
                return memory.captures.streamBehindAll(device);
            } catch (CudaException refusal) {
                if (tries == DeadContext.MOST_TRIES) {
                    throw refusal;
                }
            }
        }
    }

    /// Returns the allocator that would serve an allocation of the calling thread now: that of its scope,
    /// else the current one.
    ///
    /// @param stream a `CUstream`
    /// @throws IndexOutOfBoundsException if there is no such device
    public Allocator serving(int device, long stream) {
        return memory.serving(device, stream);
    }

    /// Runs code that enqueues work on live memory when the program may not expect it, such as a copy in
    /// the middle of an allocation. If live memory is moving, this call first waits for the end of the
    /// move, up to a bound. No live memory moves while the code runs. The caller must hold no lock.
    ///
    /// @param otherwise the result if the bound is reached before the code can run
    public <T> T whileNothingMoves(Supplier<T> work, T otherwise) {
        return memory.outOfMemory.pause().whileNothingMoves(work, otherwise);
    }

    void close(Failures failures) {
        attachments.close(failures);
    }
}

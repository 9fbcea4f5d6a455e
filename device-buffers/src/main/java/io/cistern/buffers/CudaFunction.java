package io.cistern.buffers;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.Modules.Extent;
import io.cistern.cuda.Modules.Grid;
import io.cistern.cuda.Modules.Region;
import java.lang.ref.Reference;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// A kernel of a [CudaModule], ready to be launched.
///
/// **Arguments** follow the kernel's signature: `Integer`, `Long`, `Float`, `Double`, `Short` or `Byte` for
/// numbers; a [DeviceBuffer], [DeviceElements], [PinnedBuffer] or `Long` for pointers. Sizes are not
/// checked: if the kernel expects 64 bits and the argument is an `Integer`, the upper half is undefined.
///
/// **Writes.** The check of stream order (`cistern.check=streams`) assumes that the kernel writes each
/// [DeviceBuffer] that is not passed as [#readOnly]. If kernels on several streams read one buffer at the
/// same time, pass it as [#readOnly] to each; otherwise the check reports a race.
///
/// **Streams.** A launch records a use of each buffer that belongs to another stream, so buffers may be
/// closed right after the launch. The program must order the kernel after the work that fills its buffers.
///
/// **Threads.** Any thread may call any method at any time.
public final class CudaFunction {
    private final CudaModule module;
    private final DeviceMemory memory;
    private final int device;
    private final long handle;
    private final String name;
    private Grid last = Grid.of(1, 1);

    CudaFunction(CudaModule module, DeviceMemory memory, int device, long handle, String name) {
        this.module = module;
        this.memory = memory;
        this.device = device;
        this.handle = handle;
        this.name = name;
    }

    private record ReadOnly(DeviceBuffer buffer) {}

    /// Marks a buffer that the kernel only reads, for the check of stream order. Pass the result as the
    /// argument.
    public static Object readOnly(DeviceBuffer buffer) {
        return new ReadOnly(Objects.requireNonNull(buffer, "buffer"));
    }

    /// Returns the kernel's name.
    public String name() {
        return name;
    }

    /// Returns the `CUfunction`.
    public long handle() {
        return handle;
    }

    /// Launches the kernel with a one-dimensional grid of one-dimensional blocks.
    ///
    /// @param blocks number of blocks
    /// @param threads threads in a block
    /// @param stream a stream of the kernel's device
    /// @param arguments the kernel's arguments, of the types that the class lists
    /// @throws IllegalArgumentException for an argument of another type, or a buffer of another device
    /// @throws NullPointerException for a null argument; the message gives its position
    /// @throws IllegalStateException if the stream, the module or a buffer is closed
    /// @throws CudaException if the driver refuses the launch
    public void launch(int blocks, int threads, CudaStream stream, Object... arguments) {
        launch(grid(blocks, threads), stream.handle(), arguments);
    }

    /// Reuses the last grid if it is equal, since most kernels are launched in one shape.
    private Grid grid(int blocks, int threads) {
        Grid grid = last;
        if (grid.blocks().x() != blocks || grid.threads().x() != threads) {
            grid = Grid.of(blocks, threads);
            last = grid;
        }
        return grid;
    }

    /// Launches the kernel with a grid and blocks of up to three dimensions.
    ///
    /// @param blocks number of blocks in each dimension
    /// @param threads threads in a block, in each dimension
    /// @param stream a stream of the kernel's device
    /// @throws IllegalArgumentException for an argument of another type, or a buffer of another device
    /// @throws NullPointerException for a null argument; the message gives its position
    /// @throws IllegalStateException if the stream, the module or a buffer is closed
    /// @throws CudaException if the driver refuses the launch
    public void launch(Extent blocks, Extent threads, CudaStream stream, Object... arguments) {
        launch(Grid.of(blocks, threads), stream.handle(), arguments);
    }

    /// Launches the kernel with dynamic shared memory, on a stream given by its handle.
    ///
    /// @param grid the number of blocks, the threads in each block, and the dynamic shared memory of each block
    ///     in bytes
    /// @param stream a `CUstream` of the kernel's device
    /// @throws IllegalArgumentException for an argument of another type, or a buffer of another device
    /// @throws NullPointerException for a null argument; the message gives its position
    /// @throws IllegalStateException if the module or a buffer is closed
    /// @throws CudaException if the driver refuses the launch
    public void launch(Grid grid, long stream, Object... arguments) {
        if (module.isClosed()) {
            throw new IllegalStateException("the module of kernel " + name + " is closed");
        }
        Object[] values = new Object[arguments.length];
        for (int i = 0; i < values.length; i++) {
            values[i] = value(i, arguments[i], stream);
        }
        try {
            memory.driver().modules().launch(device, handle, grid, stream, values);
        } finally {
            Reference.reachabilityFence(arguments);
        }
    }

    /// Launches the kernel on a stream: see [#launch(Grid, long, Object...)].
    public void launch(Grid grid, CudaStream stream, Object... arguments) {
        launch(grid, stream.handle(), arguments);
    }

    private Object value(int at, @Nullable Object argument, long stream) {
        return switch (argument) {
            case null ->
                throw new NullPointerException(
                        "argument " + (at + 1) + " of kernel " + name + " is null: a null pointer is 0L");
            case DeviceBuffer buffer -> region(buffer, stream, true);
            case DeviceElements elements -> region(elements.buffer(), stream, true);
            case ReadOnly(DeviceBuffer buffer) -> region(buffer, stream, false);
            case PinnedBuffer pinned -> {
                pinned.recordUse(device, stream);
                yield pinned.segment().address();
            }
            case Integer _, Long _, Float _, Double _, Short _, Byte _ -> argument;
            default ->
                throw new IllegalArgumentException("argument " + (at + 1) + " of kernel " + name + " can't be a "
                        + argument.getClass().getName() + ": pass numbers and buffers");
        };
    }

    private Region region(DeviceBuffer buffer, long stream, boolean isWritten) {
        if (buffer.device() == device) {
            return new Region(buffer.addressOn(stream), buffer.byteSize(), isWritten);
        }
        throw new IllegalArgumentException("kernel " + name + " runs on device " + device + ", but " + buffer
                + " is on another: copy it, or pass its address if the devices reach each other");
    }

    /// Returns name and device.
    @Override
    public String toString() {
        return "CudaFunction[" + name + ", device " + device + "]";
    }
}

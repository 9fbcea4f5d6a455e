package io.cistern.buffers;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.Modules.Extent;
import io.cistern.cuda.Modules.Grid;
import java.lang.ref.Reference;

/// A kernel that can be launched.
///
/// **Arguments** are what the kernel's signature has, in its order: `Integer`, `Long`, `Float`, `Double`, `Short`,
/// `Byte`; for pointers a [DeviceBuffer], [DeviceElements], [PinnedBuffer] or a `Long`. Sizes are not checked: an
/// `int` where the kernel takes 64 bits gives it half of something else.
///
/// **Streams.** Buffers of other streams are recorded as used on the one of the launch, so they may be closed at once
/// after it; that the kernel comes after the work that fills them is the program's to say.
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

    /// The kernel's name.
    public String name() {
        return name;
    }

    /// The `CUfunction`.
    public long handle() {
        return handle;
    }

    /// Launches with blocks of one dimension.
    ///
    /// @param blocks how many blocks
    /// @param threads threads in a block
    /// @param stream a stream of the kernel's device
    /// @throws IllegalArgumentException for an argument of another type, or a buffer of another device
    /// @throws IllegalStateException if the stream, the module or a buffer is closed
    /// @throws CudaException if the driver refuses
    public void launch(int blocks, int threads, CudaStream stream, Object... arguments) {
        launch(grid(blocks, threads), stream.handle(), arguments);
    }

    /// The last one again where it is the same: most kernels are launched in one shape.
    private Grid grid(int blocks, int threads) {
        Grid grid = last;
        if (grid.blocks().x() != blocks || grid.threads().x() != threads) {
            grid = Grid.of(blocks, threads);
            last = grid;
        }
        return grid;
    }

    /// Launches with blocks of up to three dimensions.
    ///
    /// @param blocks how many blocks
    /// @param threads threads in a block
    /// @param stream a stream of the kernel's device
    /// @throws IllegalArgumentException for an argument of another type, or a buffer of another device
    /// @throws IllegalStateException if the stream, the module or a buffer is closed
    /// @throws CudaException if the driver refuses
    public void launch(Extent blocks, Extent threads, CudaStream stream, Object... arguments) {
        launch(Grid.of(blocks, threads), stream.handle(), arguments);
    }

    /// Launches with dynamic shared memory, on a stream by its handle.
    ///
    /// @param grid blocks, threads in a block, and shared bytes of each block
    /// @param stream a stream of the kernel's device: a `CUstream`
    /// @throws IllegalArgumentException for an argument of another type, or a buffer of another device
    /// @throws IllegalStateException if the module or a buffer is closed
    /// @throws CudaException if the driver refuses
    public void launch(Grid grid, long stream, Object... arguments) {
        if (module.isClosed()) {
            throw new IllegalStateException("the module of kernel " + name + " is closed");
        }
        Object[] values = new Object[arguments.length];
        for (int i = 0; i < values.length; i++) {
            values[i] = value(arguments[i], stream);
        }
        try {
            memory.driver().modules().launch(device, handle, grid, stream, values);
        } finally {
            Reference.reachabilityFence(arguments);
        }
    }

    private Object value(Object argument, long stream) {
        return switch (argument) {
            case DeviceBuffer buffer -> address(buffer, stream);
            case DeviceElements elements -> address(elements.buffer(), stream);
            case PinnedBuffer pinned -> {
                pinned.recordUse(device, stream);
                yield pinned.segment().address();
            }
            case Integer _, Long _, Float _, Double _, Short _, Byte _ -> argument;
            default ->
                throw new IllegalArgumentException("kernel " + name + " can't be given a "
                        + argument.getClass().getName() + ": give it numbers and buffers");
        };
    }

    private long address(DeviceBuffer buffer, long stream) {
        if (buffer.device() == device) {
            return buffer.addressOn(stream);
        }
        throw new IllegalArgumentException("kernel " + name + " runs on device " + device + ", but " + buffer
                + " lies on another: copy it, or give its address where the devices reach each other");
    }

    /// Name and device.
    @Override
    public String toString() {
        return "CudaFunction[" + name + ", device " + device + "]";
    }
}

package io.cistern.cuda;

/// Loads kernels from PTX text and launches them.
///
/// On the simulated GPU, a kernel is a Java function that was registered under the kernel's name. The simulated
/// GPU does not run the PTX text; it only looks for `.entry` names there.
public interface Modules {
    /// Loads a module from PTX text (`cuModuleLoadData`).
    ///
    /// @throws CudaException [CudaResult#INVALID_PTX] or [CudaResult#INVALID_IMAGE]
    long load(int device, String ptx);

    /// Unloads a module (`cuModuleUnload`).
    void unload(int device, long module);

    /// Returns a kernel of a module (`cuModuleGetFunction`).
    ///
    /// @throws CudaException [CudaResult#NOT_FOUND] if the module has no such kernel;
    ///     [CudaResult#NOT_SUPPORTED] if the simulated GPU has no Java function of that name
    long function(int device, long module, String name);

    /// Launches a kernel in stream order (`cuLaunchKernel`).
    ///
    /// @param arguments the values that the kernel's signature takes: each a `Long` (also for pointers),
    ///     [Region], `Integer`, `Float`, `Double`, `Short` or `Byte`
    /// @throws IllegalArgumentException for an argument of another type
    void launch(int device, long function, Grid grid, long stream, Object... arguments);

    /// A pointer argument that also says how the kernel uses the memory there. The driver receives only the
    /// address; the race checker uses all three components.
    ///
    /// @param address the address that the kernel receives
    /// @param byteSize how many bytes from there the kernel may read or write
    /// @param isWritten false if the kernel only reads
    record Region(long address, long byteSize, boolean isWritten) {}

    /// The shape of a launch.
    ///
    /// @param blocks blocks in the grid
    /// @param threads threads in a block
    /// @param sharedBytes dynamic shared memory of each block, in bytes
    record Grid(Extent blocks, Extent threads, int sharedBytes) {
        /// Returns a one-dimensional shape without dynamic shared memory.
        public static Grid of(int blocks, int threads) {
            return of(Extent.of(blocks), Extent.of(threads));
        }

        /// Returns a shape without dynamic shared memory.
        public static Grid of(Extent blocks, Extent threads) {
            return new Grid(blocks, threads, 0);
        }
    }

    /// An extent in up to three dimensions, like C's `dim3`.
    ///
    /// @param x blocks or threads in x
    /// @param y blocks or threads in y
    /// @param z blocks or threads in z
    record Extent(int x, int y, int z) {
        /// Returns an extent of one dimension.
        public static Extent of(int x) {
            return new Extent(x, 1, 1);
        }

        /// Returns an extent of two dimensions.
        public static Extent of(int x, int y) {
            return new Extent(x, y, 1);
        }

        /// Returns the product `x × y × z`.
        public long count() {
            return (long) x * y * z;
        }
    }
}

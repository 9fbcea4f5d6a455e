package io.cistern.cuda;

/// Kernels from PTX text.
///
/// On the simulated GPU a kernel is a Java function registered under its name; the text is searched for `.entry`
/// names.
public interface Modules {
    /// Loads a module from PTX text (`cuModuleLoadData`).
    ///
    /// @throws CudaException [CudaResult#INVALID_PTX] or [CudaResult#INVALID_IMAGE]
    long load(int device, String ptx);

    /// Unloads a module (`cuModuleUnload`).
    void unload(int device, long module);

    /// Finds a kernel (`cuModuleGetFunction`).
    ///
    /// @throws CudaException [CudaResult#NOT_FOUND]
    long function(int device, long module, String name);

    /// Launches a kernel in stream order (`cuLaunchKernel`).
    ///
    /// @param arguments each a `Long` (also for pointers), `Integer`, `Float`, `Double`, `Short` or `Byte`, as
    ///     the kernel's signature has them
    void launch(int device, long function, Grid grid, long stream, Object... arguments);

    /// The shape of a launch.
    ///
    /// @param blocks blocks in the grid, in x
    /// @param threads threads in a block, in x
    /// @param sharedBytes dynamic shared memory of each block
    record Grid(int blocks, int threads, int sharedBytes) {
        /// A shape without dynamic shared memory.
        public static Grid of(int blocks, int threads) {
            return new Grid(blocks, threads, 0);
        }
    }
}

package io.cistern.benchmarks.jcuda;

import io.cistern.jcuda.CisternMalloc;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.JCudaDriver;

/// Where a program takes its memory from: the one line that is changed.
enum DeviceMalloc {
    /// As it was.
    JCUDA {
        @Override
        int allocate(CUdeviceptr pointer, long byteSize) {
            return JCudaDriver.cuMemAlloc(pointer, byteSize);
        }

        @Override
        int free(CUdeviceptr pointer) {
            return JCudaDriver.cuMemFree(pointer);
        }
    },
    /// With the imports changed.
    CISTERN {
        @Override
        int allocate(CUdeviceptr pointer, long byteSize) {
            return CisternMalloc.cuMemAlloc(pointer, byteSize);
        }

        @Override
        int free(CUdeviceptr pointer) {
            return CisternMalloc.cuMemFree(pointer);
        }
    };

    abstract int allocate(CUdeviceptr pointer, long byteSize);

    abstract int free(CUdeviceptr pointer);

    /// Memory, or an error.
    CUdeviceptr malloc(long byteSize) {
        CUdeviceptr pointer = new CUdeviceptr();
        check(allocate(pointer, byteSize));
        return pointer;
    }

    void release(CUdeviceptr... pointers) {
        for (CUdeviceptr pointer : pointers) {
            check(free(pointer));
        }
    }

    private static void check(int result) {
        if (result != 0) {
            throw new IllegalStateException("CUDA error " + result);
        }
    }
}

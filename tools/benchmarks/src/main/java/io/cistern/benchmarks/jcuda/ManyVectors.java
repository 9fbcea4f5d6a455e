package io.cistern.benchmarks.jcuda;

import static jcuda.driver.JCudaDriver.cuMemcpyDtoH;
import static jcuda.driver.JCudaDriver.cuMemsetD32;

import jcuda.Pointer;
import jcuda.Sizeof;
import jcuda.driver.CUdeviceptr;

/// The allocation-bound variant of the vector addition: a chain of additions on the device, each into memory of its
/// own, as expressions over arrays make them. Only the beginning of the last one comes back.
final class ManyVectors implements JCudaProgram {
    private static final int LINKS = 100;
    private static final int COUNT = 1 << 20;

    private final Kernels kernels;
    private final float[] last = new float[1024];

    ManyVectors(Kernels kernels) {
        this.kernels = kernels;
    }

    @Override
    public String name() {
        return "vector add, a chain of " + LINKS;
    }

    @Override
    public void run(DeviceMalloc memory) {
        long byteSize = (long) COUNT * Sizeof.FLOAT;
        CUdeviceptr one = memory.malloc(byteSize);
        cuMemsetD32(one, Float.floatToIntBits(1), COUNT);
        CUdeviceptr sum = memory.malloc(byteSize);
        cuMemsetD32(sum, 0, COUNT);
        for (int link = 0; link < LINKS; link++) {
            CUdeviceptr next = memory.malloc(byteSize);
            kernels.vectorAdd(sum, one, next, COUNT);
            memory.release(sum);
            sum = next;
        }
        cuMemcpyDtoH(Pointer.to(last), sum, (long) last.length * Sizeof.FLOAT);
        memory.release(sum, one);
    }

    @Override
    public boolean isRight() {
        for (float value : last) {
            if (value != LINKS) {
                return false;
            }
        }
        return true;
    }
}

package io.cistern.benchmarks.jcuda;

import static jcuda.driver.JCudaDriver.cuMemcpyDtoH;
import static jcuda.driver.JCudaDriver.cuMemcpyHtoD;

import jcuda.Pointer;
import jcuda.Sizeof;
import jcuda.driver.CUdeviceptr;

/// Two vectors go to the device, are added, and the sum comes back.
final class VectorAdd implements JCudaProgram {
    private final Kernels kernels;
    private final float[] x;
    private final float[] y;
    private final float[] sum;

    VectorAdd(Kernels kernels, int count) {
        this.kernels = kernels;
        x = new float[count];
        y = new float[count];
        sum = new float[count];
        for (int i = 0; i < count; i++) {
            x[i] = i;
            y[i] = 2 * i;
        }
    }

    @Override
    public String name() {
        return "vector add, " + x.length;
    }

    @Override
    public void run(DeviceMalloc memory) {
        long byteSize = (long) x.length * Sizeof.FLOAT;
        CUdeviceptr deviceX = memory.malloc(byteSize);
        CUdeviceptr deviceY = memory.malloc(byteSize);
        CUdeviceptr deviceSum = memory.malloc(byteSize);
        cuMemcpyHtoD(deviceX, Pointer.to(x), byteSize);
        cuMemcpyHtoD(deviceY, Pointer.to(y), byteSize);
        kernels.vectorAdd(deviceX, deviceY, deviceSum, x.length);
        cuMemcpyDtoH(Pointer.to(sum), deviceSum, byteSize);
        memory.release(deviceX, deviceY, deviceSum);
    }

    @Override
    public boolean isRight() {
        for (int i = 0; i < sum.length; i++) {
            if (sum[i] != x[i] + y[i]) {
                return false;
            }
        }
        return true;
    }
}

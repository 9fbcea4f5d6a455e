package io.cistern.benchmarks.jcuda;

import static jcuda.driver.JCudaDriver.cuMemcpyDtoH;
import static jcuda.driver.JCudaDriver.cuMemcpyHtoD;

import jcuda.Pointer;
import jcuda.Sizeof;
import jcuda.driver.CUdeviceptr;
import jcuda.jcublas.JCublas2;
import jcuda.jcublas.cublasHandle;
import jcuda.jcublas.cublasOperation;

/// Two matrices go to the device, JCublas multiplies them, and the product comes back.
final class MatrixMultiply implements JCudaProgram {
    private final cublasHandle handle = new cublasHandle();
    private final int size;
    private final float[] a;
    private final float[] b;
    private final float[] product;

    /// @throws UnsatisfiedLinkError if cuBLAS 12 is not installed
    MatrixMultiply(int size) {
        this.size = size;
        a = new float[size * size];
        b = new float[size * size];
        product = new float[size * size];
        for (int i = 0; i < a.length; i++) {
            a[i] = i % 3;
            b[i] = i % 5;
        }
        int status = JCublas2.cublasCreate(handle);
        if (status != 0) {
            throw new UnsatisfiedLinkError("cublasCreate: " + status);
        }
    }

    @Override
    public String name() {
        return "matrix multiply, " + size + " x " + size;
    }

    @Override
    public void run(DeviceMalloc memory) {
        long byteSize = (long) a.length * Sizeof.FLOAT;
        CUdeviceptr deviceA = memory.malloc(byteSize);
        CUdeviceptr deviceB = memory.malloc(byteSize);
        CUdeviceptr deviceProduct = memory.malloc(byteSize);
        cuMemcpyHtoD(deviceA, Pointer.to(a), byteSize);
        cuMemcpyHtoD(deviceB, Pointer.to(b), byteSize);
        int status = JCublas2.cublasSgemm(
                handle,
                cublasOperation.CUBLAS_OP_N,
                cublasOperation.CUBLAS_OP_N,
                size,
                size,
                size,
                Pointer.to(new float[] {1}),
                deviceA,
                size,
                deviceB,
                size,
                Pointer.to(new float[] {0}),
                deviceProduct,
                size);
        if (status != 0) {
            throw new IllegalStateException("cublasSgemm: " + status);
        }
        cuMemcpyDtoH(Pointer.to(product), deviceProduct, byteSize);
        memory.release(deviceA, deviceB, deviceProduct);
    }

    /// Whole numbers below 2²⁴, so sums are exact in whatever order: some elements are worked out again. Matrices
    /// are stored by columns.
    @Override
    public boolean isRight() {
        for (int at = 0; at < product.length; at += product.length / 97) {
            int row = at % size;
            int column = at / size;
            double sum = 0;
            for (int k = 0; k < size; k++) {
                sum += (double) a[k * size + row] * b[column * size + k];
            }
            if (product[at] != sum) {
                return false;
            }
        }
        return true;
    }
}

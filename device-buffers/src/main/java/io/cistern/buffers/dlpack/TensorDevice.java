package io.cistern.buffers.dlpack;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.LinearMemory;
import io.cistern.cuda.PointerAttribute;
import io.cistern.errors.SharingException;
import io.cistern.errors.SharingException.Reason;

/// The kinds of memory that a CUDA device reaches, with the numbers of `DLDeviceType`.
enum TensorDevice {
    CUDA(2),
    CUDA_HOST(3),
    CUDA_MANAGED(13);

    /// `CU_MEMORYTYPE_HOST`
    private static final long HOST = 1;

    private final int code;

    TensorDevice(int code) {
        this.code = code;
    }

    int code() {
        return code;
    }

    /// Returns the kind of memory at an address, as the driver reports it; device memory if it reports nothing.
    static TensorDevice of(LinearMemory memory, int device, long address) {
        if (address == 0) {
            return CUDA;
        }
        if (memory.attribute(device, PointerAttribute.IS_MANAGED, address) != 0) {
            return CUDA_MANAGED;
        }
        return memory.attribute(device, PointerAttribute.MEMORY_TYPE, address) == HOST ? CUDA_HOST : CUDA;
    }

    /// Checks that memory can be used on a device.
    ///
    /// @param id the tensor's `device_id`
    static void require(int code, int id, int device) {
        if (code != CUDA.code && code != CUDA_HOST.code && code != CUDA_MANAGED.code) {
            throw new SharingException(
                    Reason.WRONG_DEVICE,
                    "the tensor has DLPack's device type " + code + ", not one of CUDA's (2, 3, 13): first copy it"
                            + " to device "
                            + device);
        }
        if (code == CUDA.code && id != device) {
            throw new SharingException(
                    Reason.WRONG_DEVICE,
                    "the tensor is on device " + id + ", but the stream is one of device " + device
                            + ": take it with a stream of its own device");
        }
    }

    /// Checks that the driver knows an address, since other code supplied it.
    static void requireKnown(LinearMemory memory, int device, long address) {
        try {
            memory.attribute(device, PointerAttribute.MEMORY_TYPE, address);
        } catch (CudaException unknown) {
            throw new SharingException(
                    Reason.MALFORMED,
                    "the driver does not know the tensor's memory at 0x" + Long.toHexString(address),
                    unknown);
        }
    }
}

package io.cistern;

import io.cistern.cuda.CudaDriver;

/// Copies between buffers, on one GPU or from one to another. Nothing here waits on the host.
final class DeviceCopies {
    private DeviceCopies() {}

    /// Copies in order with both buffers' streams.
    ///
    /// The source's stream comes first where there are two: the copy waits for what it has been given. Between GPUs
    /// the copy is the source's work, so the target's stream is waited for before, and waits afterwards.
    static void inOrder(DeviceBuffer target, DeviceBuffer source) {
        CudaDriver driver = target.memory().driver();
        if (source.device() == target.device()) {
            if (source.stream() != target.stream()) {
                order(driver, source.device(), source.stream(), target.device(), target.stream());
            }
            on(target, source, target.stream());
            return;
        }
        order(driver, target.device(), target.stream(), source.device(), source.stream());
        on(target, source, source.stream());
        order(driver, source.device(), source.stream(), target.device(), target.stream());
    }

    /// Lets later work of one stream wait for what another has been given so far.
    private static void order(CudaDriver driver, int device, long stream, int laterDevice, long later) {
        long event = driver.events().create(device);
        try {
            driver.events().record(device, event, stream);
            driver.streams().await(laterDevice, later, event);
        } finally {
            driver.events().destroy(device, event);
        }
    }

    /// Copies in the order of one stream, of the source's device.
    static void on(DeviceBuffer target, DeviceBuffer source, long stream) {
        long byteSize = source.byteSize();
        if (byteSize > target.byteSize()) {
            throw new IndexOutOfBoundsException(byteSize + " bytes of " + source + " do not fit into " + target);
        }
        CudaDriver driver = target.memory().driver();
        long from = source.addressOn(stream);
        if (source.device() != target.device()) {
            driver.copies().betweenDevices(target.device(), target.address(), source.device(), from, byteSize, stream);
            return;
        }
        long to = target.addressOn(stream);
        requireApart(to, byteSize, from, byteSize);
        driver.copies().onDevice(target.device(), to, from, byteSize, stream);
    }

    static void rows(DeviceRows target, DeviceRows source, long stream) {
        long to = target.addressOn(stream);
        long from = source.addressOn(stream);
        requireApart(to, target.span(), from, source.span());
        target.buffer()
                .memory()
                .driver()
                .copies()
                .rows(
                        target.buffer().device(),
                        to,
                        target.pitch(),
                        from,
                        source.pitch(),
                        target.rowBytes(),
                        target.rows(),
                        stream);
    }

    /// Checks that both are open, and don't overlap.
    static void requireApart(DeviceBuffer target, DeviceBuffer source) {
        requireApart(target.address(), source.byteSize(), source.address(), source.byteSize());
    }

    private static void requireApart(long to, long toBytes, long from, long fromBytes) {
        if (to < from + fromBytes && from < to + toBytes) {
            throw new IllegalArgumentException("source 0x" + Long.toHexString(from) + " and target 0x"
                    + Long.toHexString(to) + " overlap in a copy of " + fromBytes
                    + " bytes: copy through a third buffer");
        }
    }
}

package io.cistern.simulated;

import java.util.function.Supplier;

/// The arguments of a call about addresses, as messages name them; only made text where it fails.
record Arguments(int device, long address, long byteSize) implements Supplier<String> {
    @Override
    public String get() {
        return "device=" + device + ", address=0x" + Long.toHexString(address) + ", byteSize=" + byteSize;
    }

    /// Those of a call about a device alone.
    record OfDevice(int device) implements Supplier<String> {
        @Override
        public String get() {
            return "device=" + device;
        }
    }
}

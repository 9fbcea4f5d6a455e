package io.cistern.simulated;

import java.util.function.Supplier;

/// The arguments of a call about addresses, for messages. The text is built only if the call fails.
record Arguments(int device, long address, long byteSize) implements Supplier<String> {
    @Override
    public String get() {
        return "device=" + device + ", address=0x" + Long.toHexString(address) + ", byteSize=" + byteSize;
    }
}

package io.cistern.internal.routing;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.Devices;
import java.lang.reflect.Proxy;

/// A driver that has one device and can do nothing: the model checker follows every object it meets, and a simulated
/// GPU has thousands.
final class OneDevice {
    static final CudaDriver DRIVER = only(CudaDriver.class, "devices", only(Devices.class, "count", 1));

    private OneDevice() {}

    private static <T> T only(Class<T> type, String known, Object answer) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (_, method, _) -> {
            if (method.getName().equals(known)) {
                return answer;
            }
            throw new UnsupportedOperationException(method.getName());
        }));
    }
}

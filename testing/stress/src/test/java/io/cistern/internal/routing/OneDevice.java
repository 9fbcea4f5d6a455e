package io.cistern.internal.routing;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.Devices;
import io.cistern.cuda.Graphs;
import java.lang.reflect.Proxy;
import java.util.Map;

/// A driver that has one device and can do nothing: the model checker follows every object it meets, and a simulated
/// GPU has thousands.
final class OneDevice {
    static final CudaDriver DRIVER = only(
            CudaDriver.class,
            Map.of("devices", only(Devices.class, Map.of("count", 1)), "graphs", only(Graphs.class, Map.of())));

    private OneDevice() {}

    private static <T> T only(Class<T> type, Map<String, Object> answers) {
        return type.cast(Proxy.newProxyInstance(
                type.getClassLoader(), new Class<?>[] {type}, (self, method, arguments) -> {
                    if (method.getName().equals("equals")) { // which the model checker asks
                        return self == arguments[0];
                    }
                    Object answer = answers.get(method.getName());
                    if (answer == null) {
                        throw new UnsupportedOperationException(method.getName());
                    }
                    return answer;
                }));
    }
}

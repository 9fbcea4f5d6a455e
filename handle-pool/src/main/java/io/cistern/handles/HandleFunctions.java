package io.cistern.handles;

import java.util.function.Consumer;
import java.util.function.IntFunction;
import java.util.function.ObjLongConsumer;

/// A library that consists of three functions.
record HandleFunctions<H>(
        String name,
        IntFunction<? extends H> creating,
        Consumer<? super H> destroying,
        ObjLongConsumer<? super H> settingStream)
        implements HandleLibrary<H> {
    @Override
    public H create(int device) {
        return creating.apply(device);
    }

    @Override
    public void destroy(H handle, int device) {
        destroying.accept(handle);
    }

    @Override
    public void setStream(H handle, long stream) {
        settingStream.accept(handle, stream);
    }
}

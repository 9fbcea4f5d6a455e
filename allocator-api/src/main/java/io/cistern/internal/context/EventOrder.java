package io.cistern.internal.context;

import io.cistern.cuda.CudaDriver;
import io.cistern.spi.StreamOrder;

/// Fences as events of the driver, without timing.
public record EventOrder(CudaDriver driver) implements StreamOrder {
    @Override
    public long record(int device, long stream) {
        long event = driver.events().create(device);
        try {
            driver.events().record(device, event, stream);
            return event;
        } catch (Throwable failure) {
            driver.events().destroy(device, event);
            throw failure;
        }
    }

    @Override
    public long recordAll(int device) {
        long event = driver.events().create(device);
        try {
            driver.events().recordAll(device, event);
            return event;
        } catch (Throwable failure) {
            driver.events().destroy(device, event);
            throw failure;
        }
    }

    @Override
    public boolean passed(int device, long fence) {
        return driver.events().hasPassed(device, fence);
    }

    @Override
    public void await(int device, long stream, long fence) {
        driver.streams().await(device, stream, fence);
    }

    @Override
    public void synchronize(int device, long fence) {
        driver.events().synchronize(device, fence);
    }

    @Override
    public void release(int device, long fence) {
        driver.events().destroy(device, fence);
    }
}

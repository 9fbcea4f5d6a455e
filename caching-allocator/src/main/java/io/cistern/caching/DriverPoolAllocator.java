package io.cistern.caching;

import io.cistern.caching.options.CachingOption;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceAllocator;
import java.util.ArrayList;
import java.util.List;

/// The allocator `async`, chosen by `backend:cudaMallocAsync` in a PyTorch string.
final class DriverPoolAllocator extends AllocatorAdaptor {
    private static final String ALLOCATOR = "async";
    private static final String BACKEND = "backend:cudaMallocAsync";

    /// The options that PyTorch itself follows with this backend.
    private static final List<CachingOption<?>> OF_LIMIT =
            List.of(CachingOption.PER_PROCESS_MEMORY_FRACTION, CachingOption.THROW_ON_CUDAMALLOC_OOM);

    private DriverPoolAllocator(DeviceAllocator async) {
        super(async);
    }

    /// Opens the allocator. Warns of options of PyTorch's own allocator, as PyTorch does.
    ///
    /// @throws ConfigurationException if there is no `async`, it can't run here, or an option asks for
    ///     something that it lacks
    static DeviceAllocator open(OptionReader reader, AllocatorContext context) {
        requireNone(reader, OF_LIMIT, "set cistern.limit, or leave one of them out");
        requireNone(reader, CachingOption.OWN, "it is the allocator 'async', with options of its own");
        List<String> withoutEffect = new ArrayList<>();
        for (CachingOption<?> option : CachingOption.PYTORCH) {
            if (reader.value(option) != null) {
                withoutEffect.add(option.key());
            }
        }
        OptionReader.warn(withoutEffect, "with " + BACKEND);
        return new DriverPoolAllocator(context.upstream(ALLOCATOR));
    }

    private static void requireNone(OptionReader reader, List<CachingOption<?>> options, String wayOut) {
        String given = reader.firstGiven(options);
        if (given != null) {
            throw new ConfigurationException("caching: " + given + " contradicts " + BACKEND + ": " + wayOut);
        }
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        return upstream().allocate(byteSize, device, stream);
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        upstream().free(address, byteSize, device, stream);
    }
}

package io.cistern.cli.doctor;

import io.cistern.cli.common.ByteSize;
import io.cistern.cli.common.PoolFigures;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeviceAttribute;
import io.cistern.cuda.DriverFeature;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.PoolAttribute;
import io.cistern.cuda.Support;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;

/// The driver's answers about a device's default pool, and about pools in general.
///
/// @param support whether the device has pools and answers; if not, the rest is empty
/// @param current whether `cuMemAllocAsync` takes from the default pool
/// @param handleTypes how pools can be exported; fabric only where the device makes fabric handles, since drivers
///     name it without an IMEX channel too
record PoolDiagnosis(
        Support support, boolean current, Map<PoolAttribute, Long> attributes, List<HandleType> handleTypes) {
    /// Asks the driver. Does not throw.
    static PoolDiagnosis of(CudaDriver driver, int device) {
        Support pools = driver.capabilities().devices().get(device).supports(DriverFeature.MEMORY_POOLS);
        try {
            return pools.supported() ? asked(driver, device) : none(pools);
        } catch (CudaException e) {
            return none(Support.no(String.valueOf(e.getMessage())));
        }
    }

    private static PoolDiagnosis none(Support reason) {
        return new PoolDiagnosis(reason, false, Map.of(), List.of());
    }

    private static PoolDiagnosis asked(CudaDriver driver, int device) {
        MemoryPools pools = driver.pools();
        long pool = pools.defaultPool(device);
        Map<PoolAttribute, Long> attributes = new EnumMap<>(PoolAttribute.class);
        for (PoolAttribute attribute : PoolAttribute.values()) {
            attributes.put(attribute, pools.attribute(device, pool, attribute));
        }
        int types = driver.devices().attribute(device, DeviceAttribute.MEMPOOL_SUPPORTED_HANDLE_TYPES);
        boolean fabric = driver.capabilities()
                .devices()
                .get(device)
                .supports(DriverFeature.FABRIC)
                .supported();
        List<HandleType> handleTypes = Stream.of(HandleType.POSIX_FILE_DESCRIPTOR, HandleType.FABRIC)
                .filter(type -> (types & type.bit()) != 0 && (type != HandleType.FABRIC || fabric))
                .toList();
        return new PoolDiagnosis(Support.yes(), pools.currentPool(device) == pool, attributes, handleTypes);
    }

    String text() {
        if (!support.supported()) {
            return "unknown: " + support.reason();
        }
        return "release threshold " + PoolFigures.threshold(value(PoolAttribute.RELEASE_THRESHOLD)) + ", reserved "
                + ByteSize.format(value(PoolAttribute.RESERVED_CURRENT)) + ", used "
                + ByteSize.format(value(PoolAttribute.USED_CURRENT)) + (current ? ", current" : ", not current");
    }

    String policies() {
        return words(attributes.keySet().stream().filter(each -> each.isInt() && value(each) != 0));
    }

    String exports() {
        return words(handleTypes.stream());
    }

    private static String words(Stream<? extends Enum<?>> constants) {
        List<String> words = constants
                .map(each -> each.name().toLowerCase(Locale.ROOT).replace('_', ' '))
                .toList();
        return words.isEmpty() ? "none" : String.join(", ", words);
    }

    private long value(PoolAttribute attribute) {
        return attributes.getOrDefault(attribute, 0L);
    }
}

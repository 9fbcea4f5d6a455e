package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DeviceAttribute;
import io.cistern.cuda.DriverCapabilities.DeviceCapabilities;
import io.cistern.cuda.DriverFeature;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.PoolAttribute;
import io.cistern.cuda.Support;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.options.AllocatorOptions;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// The options of one `async`, read and checked against each other.
///
/// @param pool which of the driver's pools memory comes from
/// @param perStream whether each stream has a pool of its own
/// @param threshold the bytes that pools keep; empty to leave the threshold of another owner's pool
/// @param settings further attributes to set; the allocator restores them in pools of others when it closes
/// @param location where the memory of own pools lives
/// @param handleTypes bits of [HandleType]
/// @param maxBytes the most bytes that an own pool reserves, or 0 for the driver's own limit
/// @param hardwareDecompress whether the decompression engine may write to own pools
/// @param smallBytes the largest block of the pool for small blocks, or 0 for no such pool
/// @param initialBytes the bytes that each pool obtains when it is first used
record AsyncOptions(
        PoolChoice pool,
        boolean perStream,
        Optional<ReleaseThreshold> threshold,
        Map<PoolAttribute, Long> settings,
        PoolLocation location,
        int handleTypes,
        long maxBytes,
        boolean hardwareDecompress,
        long smallBytes,
        long initialBytes) {
    /// Every option at its default.
    static final AsyncOptions USUAL = new AsyncOptions(
            PoolChoice.OWN,
            false,
            Optional.of(ReleaseThreshold.keepAll()),
            Map.of(),
            PoolLocation.DEVICE,
            0,
            0,
            false,
            0,
            0);

    private static final List<Map.Entry<AsyncOption<Boolean>, PoolAttribute>> POLICIES = List.of(
            Map.entry(AsyncOption.REUSE_FOLLOW_EVENT_DEPENDENCIES, PoolAttribute.REUSE_FOLLOW_EVENT_DEPENDENCIES),
            Map.entry(AsyncOption.REUSE_ALLOW_OPPORTUNISTIC, PoolAttribute.REUSE_ALLOW_OPPORTUNISTIC),
            Map.entry(AsyncOption.REUSE_ALLOW_INTERNAL_DEPENDENCIES, PoolAttribute.REUSE_ALLOW_INTERNAL_DEPENDENCIES));

    /// Returns these options with another threshold.
    AsyncOptions withThreshold(ReleaseThreshold other) {
        return new AsyncOptions(
                pool,
                perStream,
                Optional.of(other),
                settings,
                location,
                handleTypes,
                maxBytes,
                hardwareDecompress,
                smallBytes,
                initialBytes);
    }

    /// Copies the settings.
    AsyncOptions {
        settings = Map.copyOf(settings);
    }

    /// Reads the options of a spec.
    ///
    /// @param keptBytes the release threshold of an own pool if the spec names none
    /// @throws ConfigurationException if a value is not legal or two contradict each other
    static AsyncOptions read(AllocatorOptions given, long keptBytes) {
        PoolChoice pool = AsyncOption.POOL.read(given).orElse(PoolChoice.OWN);
        if (!pool.own()) {
            refuseWithChosen(pool, given);
        }
        AsyncOptions options = new AsyncOptions(
                pool,
                AsyncOption.PER_STREAM.read(given).orElse(false),
                AsyncOption.RELEASE_THRESHOLD.read(given).or(() -> usualThreshold(pool, keptBytes)),
                settings(given),
                AsyncOption.LOCATION.read(given).orElse(PoolLocation.DEVICE),
                bits(AsyncOption.HANDLE_TYPES.read(given).orElse(List.of())),
                AsyncOption.MAX_SIZE.read(given).orElse(0L),
                AsyncOption.HARDWARE_DECOMPRESS.read(given).orElse(false),
                AsyncOption.SMALL_POOL.read(given).orElse(0L),
                AsyncOption.INITIAL_SIZE.read(given).orElse(0L));
        options.check();
        return options;
    }

    private static Optional<ReleaseThreshold> usualThreshold(PoolChoice pool, long keptBytes) {
        if (pool.own()) {
            return Optional.of(new ReleaseThreshold.Bytes(keptBytes));
        }
        return pool == PoolChoice.DEFAULT && keptBytes > 0
                ? Optional.of(new ReleaseThreshold.Raised())
                : Optional.empty();
    }

    private static void refuseWithChosen(PoolChoice pool, AllocatorOptions given) {
        for (AsyncOption<?> option : AsyncOption.OF_OWN_POOLS) {
            if (option.read(given).isPresent()) {
                throw contradiction(
                        option.key(),
                        "pool=" + pool,
                        "an existing pool can't be changed; valid: " + option + " with pool=own");
            }
        }
    }

    private static Map<PoolAttribute, Long> settings(AllocatorOptions given) {
        Map<PoolAttribute, Long> settings = new EnumMap<>(PoolAttribute.class);
        POLICIES.forEach(policy ->
                policy.getKey().read(given).ifPresent(allowed -> settings.put(policy.getValue(), allowed ? 1L : 0L)));
        return settings;
    }

    private static int bits(List<HandleType> types) {
        return types.stream().mapToInt(HandleType::bit).reduce(0, (one, other) -> one | other);
    }

    private void check() {
        checkThreshold();
        if (threshold.orElse(ReleaseThreshold.keepAll()) instanceof ReleaseThreshold.Bytes(long keeps)
                && initialBytes > keeps) {
            throw contradiction(
                    "initial_size=" + initialBytes,
                    "release_threshold=" + keeps,
                    "bytes above it go back at the next synchronisation; valid: at most the threshold");
        }
        if (maxBytes != 0 && initialBytes > maxBytes) {
            throw contradiction("initial_size=" + initialBytes, "max_size=" + maxBytes, "valid: at most max_size");
        }
        if (smallBytes != 0 && perStream) {
            throw contradiction(
                    "small_pool", "per_stream=true", "pools are split by size or by stream; leave one of them out");
        }
        if (handleTypes != 0 && location.managed()) {
            throw contradiction(
                    "handle_types", "location=managed", "managed memory can't be exported; valid: location=device");
        }
        if (hardwareDecompress && !location.onDevice()) {
            throw contradiction(
                    "hardware_decompress=true", "location=" + location, "the engine writes only to device memory");
        }
    }

    private void checkThreshold() {
        if (adaptive() && !pool.own()) {
            throw contradiction(
                    "release_threshold=adaptive", "pool=" + pool, "adaptive resets the pool's high-water mark");
        }
    }

    /// Returns whether the threshold is found while the program runs.
    boolean adaptive() {
        return threshold.orElse(ReleaseThreshold.keepAll()) instanceof ReleaseThreshold.Adaptive;
    }

    private static ConfigurationException contradiction(String one, String other, String why) {
        return new ConfigurationException("async: " + one + " contradicts " + other + ": " + why);
    }

    /// Checks these options against the abilities of all devices.
    ///
    /// @return this
    /// @throws ConfigurationException with the reason, if a device does not support an option
    AsyncOptions requireSupport(CudaDriver driver) {
        for (DeviceCapabilities device : driver.capabilities().devices()) {
            if (!location.onDevice()) {
                require(device, location.feature(), "location=" + location);
            }
            if (hardwareDecompress) {
                require(device, DriverFeature.HARDWARE_DECOMPRESS, "hardware_decompress=true");
            }
            requireHandleTypes(driver, device.device());
            requireRoom(driver.devices().totalBytes(device.device()), device.device());
        }
        return this;
    }

    private void requireRoom(long deviceBytes, int device) {
        if (location.onDevice() && initialBytes > deviceBytes) {
            throw contradiction(
                    "initial_size=" + initialBytes,
                    "the " + deviceBytes + " bytes of device " + device,
                    "valid: at most the device's memory");
        }
    }

    private static void require(DeviceCapabilities device, DriverFeature feature, String option) {
        Support support = device.supports(feature);
        if (!support.supported()) {
            throw new ConfigurationException(
                    "async: " + option + " is not supported on device " + device.device() + ": " + support.reason());
        }
    }

    private void requireHandleTypes(CudaDriver driver, int device) {
        int possible = handleTypes == 0
                ? 0
                : driver.devices().attribute(device, DeviceAttribute.MEMPOOL_SUPPORTED_HANDLE_TYPES);
        if ((handleTypes & ~possible) != 0) {
            throw new ConfigurationException("async: handle_types with bits " + handleTypes
                    + " are not supported on device " + device + ", whose pools have bits " + possible
                    + " (posix_fd is 1, fabric 8)");
        }
    }

    /// Returns whether one pool serves all streams of a device.
    boolean onePool() {
        return !perStream && smallBytes == 0;
    }

    /// Returns the properties of a new pool for a device.
    MemoryPoolProperties properties(CudaDriver driver, int device) {
        return new MemoryPoolProperties(
                location.of(driver, device), handleTypes, maxBytes, hardwareDecompress, location.managed());
    }
}

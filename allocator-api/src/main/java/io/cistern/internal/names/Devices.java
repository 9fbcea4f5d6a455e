package io.cistern.internal.names;

import java.util.Objects;

/// Checks ordinals of devices. The error names the missing device and those that exist, so that nobody
/// mistakes it for a defect.
public final class Devices {
    private Devices() {}

    /// Checks an ordinal, in each allocation. It uses [Objects#checkIndex], because explicit comparisons
    /// compiled to slower code for some allocate/free pairs.
    ///
    /// @return the ordinal
    /// @throws IndexOutOfBoundsException if there is no such device
    public static int check(int device, int count) {
        try {
            return Objects.checkIndex(device, count);
        } catch (IndexOutOfBoundsException e) {
            throw none(device, count);
        }
    }

    /// Returns the error for a device that does not exist. Hot paths catch the array's own exception and throw
    /// this one.
    public static IndexOutOfBoundsException none(int device, int count) {
        return new IndexOutOfBoundsException("there is no device " + device + ": the driver has " + all(count));
    }

    /// Describes the devices of a machine with this many.
    static String all(int count) {
        return switch (count) {
            case 0 -> "none";
            case 1 -> "only device 0";
            default -> "devices 0 to " + (count - 1);
        };
    }
}

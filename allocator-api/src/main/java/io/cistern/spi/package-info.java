/// What plug-ins implement. Start at [DeviceAllocator][io.cistern.spi.DeviceAllocator], whose page lists all types of
/// this package.
package io.cistern.spi;

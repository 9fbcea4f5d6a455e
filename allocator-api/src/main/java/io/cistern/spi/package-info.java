/// The SPI that plug-ins implement. Start at [DeviceAllocator][io.cistern.spi.DeviceAllocator]: its page lists
/// all types of this package.
package io.cistern.spi;

/// Memory of the driver's pools for other processes and other devices.
///
/// One process [serves a pool][io.cistern.async.sharing.ExportedPool] at a path and publishes allocations by
/// name; others of the same user [connect][io.cistern.async.sharing.ImportedPool] and map them. Bytes are never
/// copied. Each side records an event behind what it did, and the other side's streams wait for it, so contents
/// stay ordered without the hosts waiting.
package io.cistern.async.sharing;

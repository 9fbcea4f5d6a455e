/// Shares memory of the driver's pools with other processes and other devices.
///
/// One process [serves a pool][io.cistern.async.sharing.ExportedPool] at a path and publishes allocations by
/// name. Other processes of the same user [connect][io.cistern.async.sharing.ImportedPool] and map these
/// allocations. Bytes are never copied. Each side records an event after its work, and the other side waits
/// for it on the host, so neither uses the memory before the other's work on it has finished.
package io.cistern.async.sharing;

/// The checking levels, as layers around the allocator: the code that allocated and freed each block, guard
/// bytes and a pattern in freed memory, and all invariants after each call. At level `off` there are no layers.
package io.cistern.caching.internal.check;

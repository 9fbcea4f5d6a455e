/// The checking levels, as layers around the allocator: who allocated and who freed each block, guard bytes and a
/// pattern in freed memory, and all invariants after each call. At level `off` nothing of it is there.
package io.cistern.caching.internal.check;

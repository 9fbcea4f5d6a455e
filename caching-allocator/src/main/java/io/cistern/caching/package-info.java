/// The allocator `caching` keeps freed memory and serves later requests from it.
///
/// ```
/// thread cache    one per thread and GPU: freed small blocks by stream and size      no lock
/// stream shard    one per stream for small blocks, one for large: best fit           a short lock
/// pages           physical memory under the addresses of all shards                  driver calls
/// ```
///
/// **The life of a block.** A request of up to 64 KiB takes a block of its size class from the thread's cache, if
/// there is one. Otherwise the stream's shard splits a block from the smallest free run that has enough free bytes.
/// For a larger request, idle pages that left the run count as if they were still there. A block that is freed on
/// its own stream returns to the thread's cache, or to the shard, which merges it with its free neighbours. A block
/// that another stream used waits in the shard until a fence shows that the other stream's work has completed.
///
/// **The life of a page.** A page is created when a miss needs more memory than is idle. Its *home* is the
/// address range at which blocks use it. Once the whole page lies in one free block, it is idle: another
/// address range, perhaps of another stream, may become its home. The old range keeps its mapping, as an
/// *alias*, so that the page can come back without a driver call. A page returns to the driver on a `trim`,
/// or when the driver has no memory left.
///
/// **The life of a miss.** First, thread caches return their blocks of the shard. Then idle pages of any
/// stream are remapped for the request, or new pages are created. While most of the device is free, the
/// allocator does not take a page from a stream whose work has not completed: it creates pages, up to an
/// eighth more than the peak of live bytes. Before the request fails, memory is reclaimed.
///
/// The spec of an allocator is `caching:OPTION=VALUE,…`; [io.cistern.caching.options.CachingOption]
/// lists all options.
package io.cistern.caching;

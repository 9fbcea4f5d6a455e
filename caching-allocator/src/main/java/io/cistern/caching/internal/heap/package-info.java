/// Best fit over ranges of addresses. [BlockHeap] splits ranges into blocks, finds the best free block for a request
/// and merges freed blocks with their neighbours. Plain data without locks: it ignores the memory under the
/// addresses and makes no driver call. An observer is notified of addresses that become free or are taken.
package io.cistern.caching.internal.heap;

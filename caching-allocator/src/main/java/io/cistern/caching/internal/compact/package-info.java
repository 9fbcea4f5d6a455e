/// Compaction: pages with few live bytes are replaced by smaller ones at the same addresses.
@org.jspecify.annotations.NullMarked
package io.cistern.caching.internal.compact;

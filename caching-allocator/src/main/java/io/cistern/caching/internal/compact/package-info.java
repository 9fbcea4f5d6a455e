/// Live memory moved together: pages that hold little of it are replaced by smaller ones at the same addresses.
@org.jspecify.annotations.NullMarked
package io.cistern.caching.internal.compact;

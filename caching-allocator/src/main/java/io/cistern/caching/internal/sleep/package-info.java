/// Pages that sleep: their memory is given back, their addresses stay, and their bytes are on the host or given up.
package io.cistern.caching.internal.sleep;

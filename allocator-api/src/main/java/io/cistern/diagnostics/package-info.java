/// Reports of live blocks, of leaks, and of what was tried when memory ran out.
package io.cistern.diagnostics;

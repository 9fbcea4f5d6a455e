/// Events of device memory, and reports: of live blocks, of leaks, and of the steps tried when memory ran out.
package io.cistern.diagnostics;

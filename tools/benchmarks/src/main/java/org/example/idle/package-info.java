/// The content of `StartUp`'s JARs: a plug-in, and the two programs that it times.
package org.example.idle;

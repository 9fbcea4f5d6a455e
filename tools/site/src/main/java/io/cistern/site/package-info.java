/// Makes the pages of the repository a site of plain HTML files.
@NullMarked
package io.cistern.site;

import org.jspecify.annotations.NullMarked;

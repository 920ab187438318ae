// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Messages on standard error, in addition to the table.
enum Console {
    /// Prints `text` on a separate line.
    static func note(_ text: String) {
        FileHandle.standardError.write(Data("  .. \(text)\n".utf8))
    }

    /// Prints `text` to standard output at once.
    static func show(_ text: String) {
        FileHandle.standardOutput.write(Data((text + "\n").utf8))
    }
}

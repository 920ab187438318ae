// SPDX-License-Identifier: Apache-2.0

/// The reason why the probe cannot run here.
struct ProbeError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

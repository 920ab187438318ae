// SPDX-License-Identifier: Apache-2.0

/// The reason why a check cannot run.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

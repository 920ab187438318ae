// SPDX-License-Identifier: Apache-2.0

/// The reason why a test or a check cannot run, and what to install or check.
public struct TestSupportError: Error, CustomStringConvertible {
    public let description: String

    public init(_ description: String) {
        self.description = description
    }
}

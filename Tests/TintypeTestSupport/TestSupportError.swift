// SPDX-License-Identifier: Apache-2.0

/// An error that says which part of the tests is missing, and what to install or check.
public struct TestSupportError: Error, CustomStringConvertible {
    public let description: String

    public init(_ description: String) {
        self.description = description
    }
}

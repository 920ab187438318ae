// SPDX-License-Identifier: Apache-2.0

/// A mistake in the settings of a server.
///
/// ```swift
/// do {
///     try configuration.check()
/// } catch {
///     print(error.message)
/// }
/// ```
public struct SettingError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The setting, its value and the values that it takes, in full sentences.
    ///
    /// It never contains a key or another secret.
    public let message: String

    package init(_ message: String) {
        self.message = message
    }

    public var description: String { self.message }
}

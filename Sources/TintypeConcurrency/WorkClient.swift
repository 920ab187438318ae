// SPDX-License-Identifier: Apache-2.0

/// The client for which a task works.
///
/// Gates and lanes share their places among clients. Work without a client counts as work of a client with nothing inside.
package struct WorkClient: Sendable, Hashable {
    /// The client of the current task and of the tasks that it creates.
    @TaskLocal package static var current: WorkClient?

    private let number: UInt128

    package init(number: UInt128) {
        self.number = number
    }
}

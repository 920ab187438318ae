// SPDX-License-Identifier: Apache-2.0

/// Something that can be measured by name.
struct Benchmark: Sendable {
    /// The name, for `--filter` and for its rows.
    let name: String
    /// The summary, in one line, for `--list`.
    let summary: String
    /// Measures it.
    let run: @Sendable (Session) async throws -> [Row]
}

/// Something that can be measured by name.
struct Benchmark: Sendable {
    /// What `--filter` looks at and what its rows are called.
    let name: String
    /// What it measures, in one line for `--list`.
    let summary: String
    /// Measures it.
    let run: @Sendable (Session) async throws -> [Row]
}

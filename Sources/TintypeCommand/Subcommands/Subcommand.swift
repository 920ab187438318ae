/// One thing that the command does.
protocol Subcommand: Sendable {
    /// What it is called by.
    static var name: String { get }
    /// One line for the list of subcommands.
    static var summary: String { get }
    /// What `--help` prints.
    static var help: String { get }
    /// The options without a value.
    static var flags: Set<String> { get }
    /// The options with a value.
    static var values: Set<String> { get }

    /// Checks the arguments.
    init(_ arguments: ParsedArguments) throws(UsageError)

    /// Does the work; false when any input failed. What failed was reported before.
    func run() async throws -> Bool
}

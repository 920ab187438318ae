// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The command: picks a subcommand, runs it until it ends or `Ctrl-C` comes, sets the exit code.
@main
struct TintypeCommand {
    /// The exit codes of the process.
    enum Exit {
        static let success: CInt = 0
        static let failure: CInt = 1
        static let usage: CInt = 2
    }

    /// The signals of the process.
    static let interrupt = Interrupt(takesHangup: Argument.all.first?.text == ServeCommand.name)

    private static let version = "0.1.0"

    private static var subcommands: [any Subcommand.Type] {
        [
            LoadCommand.self, ShowCommand.self, InfoCommand.self, DecodeCommand.self, CacheCommand.self,
            PrefetchCommand.self, ServeCommand.self, ClusterCommand.self,
        ]
    }

    static func main() {
        Output.reserve()
        let interrupt = self.interrupt
        do {
            try ProcessLimits.prepare()
        } catch {
            Output.error.tell("tintype: \(error)")
            exit(Exit.failure)
        }
        let work = Task(name: "command") { @concurrent in await self.run(Argument.all) }
        Task(name: "exit") { @concurrent in
            let code = await work.value
            exit(interrupt.exitCode(code))
        }
        interrupt.wait { work.cancel() }
    }

    private static func run(_ arguments: [Argument]) async -> CInt {
        do {
            guard let name = arguments.first?.text else {
                throw UsageError("a subcommand is missing; tintype --help lists them")
            }
            if name == "--help" || name == "-h" || name == "help" {
                let subject = self.subcommands.first { $0.name == arguments.dropFirst().first?.text }
                try Output.standard.line(subject?.help ?? self.help)
                return Exit.success
            }
            if name == "--version" {
                try Output.standard.line("tintype \(self.version)")
                return Exit.success
            }
            guard let subcommand = self.subcommands.first(where: { $0.name == name }) else {
                throw UsageError("there is no subcommand \(name); tintype --help lists them")
            }
            let options = arguments.map(\.text).prefix { $0 != "--" }
            if options.contains("--help") || options.contains("-h") {
                try Output.standard.line(subcommand.help)
                return Exit.success
            }
            let parsed = try ParsedArguments(arguments.dropFirst(), flags: subcommand.flags, values: subcommand.values)
            return try await subcommand.init(parsed).run() ? Exit.success : Exit.failure
        } catch let error as UsageError {
            // A signal interrupts the reading of a file that an option names.
            if !Task.isCancelled { Output.error.tell("tintype: \(ErrorText(error).line)") }
            return Exit.usage
        } catch is CancellationError {
            return Exit.failure
        } catch let error as OutputError where error.isReaderGone {
            return Exit.failure
        } catch {
            Output.error.tell("tintype: \(ErrorText(error).line)")
            return Exit.failure
        }
    }

    private static var help: String {
        """
        tintype loads images: from memory, from disk, or from their origin.

        Usage: tintype SUBCOMMAND ...

        \(self.subcommands.map { "  \($0.name)".padded(to: 12) + $0.summary }.joined(separator: "\n"))

        tintype SUBCOMMAND --help says more; tintype --version prints the version.
        Exit codes: 0 all is well, 1 an input failed, 2 wrong usage, 130 interrupted.
        """
    }
}

/// One thing that the command does.
protocol Subcommand: Sendable {
    /// The name of the subcommand.
    static var name: String { get }
    /// One line for the list of subcommands.
    static var summary: String { get }
    /// The output of `--help`.
    static var help: String { get }
    /// The options without a value.
    static var flags: Set<String> { get }
    /// The options with a value.
    static var values: Set<String> { get }

    /// Checks the arguments.
    init(_ arguments: ParsedArguments) throws(UsageError)

    /// Does the work, and reports each failure; returns false if any input failed.
    func run() async throws -> Bool
}

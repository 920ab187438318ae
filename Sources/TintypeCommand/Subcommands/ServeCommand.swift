// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import TintypeServer

/// `tintype serve`: answers imgproxy's URLs with images.
struct ServeCommand: Subcommand {
    static let name = "serve"
    static let summary = "answer imgproxy's URLs over HTTP"
    static let flags = ServerSettings.switches.union(["--check", "--help-environment"])
    static let values = ServerSettings.valueOptions.union(["--config"])
    static var help: String {
        """
        Answers imgproxy's URLs with images that are loaded, changed and cached. It is ready when it has
        printed one line with its address. SIGTERM finishes the answers that have begun, and ends it;
        SIGHUP reads the file and the presets again, but applies only settings of URLs, such as keys.

        Usage: tintype serve [options]

          --config FILE                 a file of settings, one name = value a line; a name is an option
                                        without its dashes, and lines that begin with # are comments
          --check                       checks the settings; ends with 0 if they are valid, otherwise 2
          --help-environment            lists the variables for the settings, and imgproxy's variables

        \(ServerSettings.optionsHelp)

        An option without a value has an opposite, such as --no-ui. An option that takes a list may be
        given several times, and has commas between its values. A TIME is in seconds unless it has a unit
        (ms, s, m, h, d), a SIZE in bytes unless it has one (kB, MB, GB, KiB, MiB, GiB).
        """
    }

    private let options: [(name: String, value: String?)]
    private let config: Argument?
    private let onlyChecks: Bool
    private let printsVariables: Bool

    init(_ arguments: ParsedArguments) throws(UsageError) {
        guard arguments.operands.isEmpty else {
            throw UsageError("serve takes options only; see --help")
        }
        self.config = arguments.file("--config")
        guard self.config?.text != "-" else {
            throw UsageError("--config needs the name of a file, because SIGHUP reads it again")
        }
        self.onlyChecks = arguments.has("--check")
        self.printsVariables = arguments.has("--help-environment")
        let own = ["--config", "--check", "--help-environment"]
        var options: [(name: String, value: String?)] = []
        for (option, value) in arguments.order where !own.contains(option) {
            guard let value else {
                options.append((name: option, value: nil))
                continue
            }
            guard let text = value.exactText else { throw UsageError("the value of \(option) is not UTF-8") }
            options.append((name: option, value: text))
        }
        self.options = options
    }

    func run() async throws -> Bool {
        if self.printsVariables {
            try Output.standard.line(ServerSettings.environmentHelp)
            return true
        }
        let settings = try self.settings()
        Self.tell(settings.warnings)
        if self.onlyChecks {
            try await Self.explaining { try await ImageService.check(settings.configuration) }
            try Output.standard.line("the settings are valid")
            return true
        }
        try await self.serve(settings.configuration)
        return true
    }

    /// Makes a mistake in the settings one of the command's usage.
    private static func explaining<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch let error as SettingError {
            throw UsageError(error.message)
        }
    }

    /// Answers requests until the task is cancelled.
    private func serve(_ configuration: ImageServer.Configuration) async throws {
        ProcessLimits.raiseDescriptorLimit()
        let server = try await Self.explaining { try await ImageServer.start(configuration) }
        let (hangups, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        // Some seconds remain for the end of the caches.
        let patience = Int(clamping: configuration.load.drainTime.components.seconds) + 6
        TintypeCommand.interrupt.allowOrderlyEnd(patience: patience) { continuation.yield() }
        do {
            try Output.standard.line("listening on http://\(server.address)")
            if let address = server.metricsAddress {
                server.log(.info, "The metrics are at http://\(address)/metrics.")
            }
            // Cancellation ends the stream.
            for await _ in hangups { self.reload(server, isSigned: !configuration.addresses.keys.isEmpty) }
        } catch {
            await server.shutdown()
            throw error
        }
        // This task is cancelled, and answers that have begun must end in order.
        await Task(name: "drain") { await server.shutdown() }.value
    }

    /// Reads the settings again and applies the settings of URLs; after a mistake, the old settings stay in force.
    private func reload(_ server: ImageServer, isSigned: Bool) {
        do throws(UsageError) {
            // Opening a pipe would wait for its writer.
            if let config, config.isPipe {
                let name = config.text.abbreviated
                throw UsageError("\(name) of --config is a pipe. The server reads a pipe once, when it starts.")
            }
            let settings = try self.settings()
            // A file that is empty for a moment must not open the server.
            guard !isSigned || !settings.configuration.addresses.keys.isEmpty else {
                throw UsageError("there are no keys any more; start the server anew if it is to answer unsigned URLs.")
            }
            Self.tell(settings.warnings)
            do throws(SettingError) {
                try server.reload(settings.configuration.addresses)
            } catch {
                throw UsageError(error.message)
            }
            server.log(
                .info,
                "The settings of URLs, such as keys and presets, were read again. Other settings need a restart."
            )
        } catch {
            guard !Task.isCancelled else { return }
            server.log(.error, "The old settings stay: \(ErrorText(error).line)")
        }
    }

    private static func tell(_ warnings: [String]) {
        for warning in warnings {
            Output.error.tell("tintype: warning: \(warning.printable.shortened(to: ErrorText.maximumColumns))")
        }
    }

    private func settings() throws(UsageError) -> ServerSettings {
        let file = try self.config.map { config throws(UsageError) in try Self.text(of: config) }
        do throws(SettingError) {
            return try ServerSettings(
                options: self.options,
                environment: ProcessInfo.processInfo.environment,
                file: file,
                fileName: self.config?.text.abbreviated ?? ""
            )
        } catch {
            throw UsageError(error.message)
        }
    }

    /// A file of settings is no larger.
    private static let maximumByteCount = 4 << 20

    private static func text(of path: Argument) throws(UsageError) -> String {
        let name = path.text.abbreviated
        var bytes: [UInt8] = []
        do throws(SystemError) {
            let file = try InputFile(path)
            while true {
                let piece = try file.read()
                guard !piece.isEmpty else { break }
                bytes += piece
                guard bytes.count <= Self.maximumByteCount else { break }
            }
        } catch {
            throw UsageError("the file \(name) of --config cannot be read (\(error))")
        }
        guard bytes.count <= Self.maximumByteCount, let text = String(validating: bytes, as: UTF8.self) else {
            throw UsageError("the file \(name) of --config is not text in UTF-8 of up to 4 MB")
        }
        return text
    }
}

extension Argument {
    /// Whether the file of this name is a pipe.
    fileprivate var isPipe: Bool {
        var status = stat()
        return self.withPath { stat($0, &status) } == 0 && status.st_mode & S_IFMT == S_IFIFO
    }
}

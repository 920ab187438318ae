// SPDX-License-Identifier: Apache-2.0

/// An error of a Redis command, or of the way to the server.
///
/// Cancellation is never such an error: it is always a `CancellationError`.
///
/// ```swift
/// let client = RedisClient(RedisConfiguration(.standalone(RedisAddress("127.0.0.1"))))
/// do {
///     _ = try await client.run(RedisCommand("GET", "greeting", key: "greeting", isReadOnly: true))
/// } catch let error as RedisError where error.code == .timedOut {
///     print(error.message)
/// }
/// ```
public struct RedisError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kinds of failure.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        /// The time budget of the command ended.
        ///
        /// A command that was written may have been executed.
        case timedOut
        /// The server cannot be reached, or the connection was lost.
        ///
        /// A command that was written may have been executed.
        case disconnected
        /// The server refuses the client, the password, the database or the command (`NOAUTH`, `WRONGPASS`, `NOPERM`,
        /// `DENIED`), or belongs to a cluster that is not configured as one (`MOVED`, `ASK`).
        case refused
        /// The server refuses to write: it is a replica (`READONLY`), has too few replicas (`NOREPLICAS`), or cannot
        /// save (`MISCONF`).
        case readOnly
        /// The server reads its data set from disk (`LOADING`).
        case loading
        /// The server has no memory for the value (`OOM`).
        case outOfMemory
        /// The cluster does not serve the slot at the moment (`CLUSTERDOWN`, `TRYAGAIN`, `MASTERDOWN`).
        case clusterDown
        /// As many commands wait as ``RedisConfiguration/waitingLimit`` permits.
        case tooManyWaiting
        /// The server answered with any other error.
        case serverError
        /// The client was shut down.
        case shutDown
        /// The command cannot run on a connection that commands share, such as `SUBSCRIBE` and `MULTI`.
        case invalidCommand
        /// The configuration contradicts itself, or a URL is malformed.
        case invalidConfiguration
        /// The system refuses a thread or a file descriptor.
        case outOfResources
    }

    /// The kind of failure.
    public let code: Code
    /// The event and the advice, for the people who run the program.
    public let message: String

    /// Creates an error.
    ///
    /// ```swift
    /// let configuration = try RedisConfiguration(url: ProcessInfo.processInfo.environment["REDIS_URL"] ?? "")
    /// guard configuration.password != nil else {
    ///     throw RedisError(.invalidConfiguration, "REDIS_URL has no password; write redis://:password@host.")
    /// }
    /// ```
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The code and the message.
    public var description: String { "\(self.code.rawValue): \(self.message)" }

    /// The error that a server has replied with: `text` begins with a word in capitals.
    init(reply text: String, from address: RedisAddress) {
        let word = text.prefix { $0 != " " }
        let (code, advice): (Code, String) =
            switch word {
            case "NOAUTH": (.refused, "Configure a password.")
            case "WRONGPASS": (.refused, "Check the user name and the password.")
            case "NOPERM": (.refused, "Permit the command and the key in the server's access control list.")
            case "READONLY": (.readOnly, "Write to the master: configure Sentinel or the cluster.")
            case "NOREPLICAS": (.readOnly, "Check the replicas of the master, or lower min-replicas-to-write.")
            case "MISCONF": (.readOnly, "Check the disk of the server: it cannot save its snapshots.")
            case "LOADING": (.loading, "Try again later.")
            case "OOM": (.outOfMemory, "Raise maxmemory, or set maxmemory-policy to allkeys-lfu.")
            case "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN": (.clusterDown, "Try again later.")
            case "MOVED", "ASK": (.refused, "Configure the cluster as redis+cluster://.")
            case "CROSSSLOT": (.serverError, "Give the keys the same hash tag, such as {tag}.")
            case "ERR" where text.contains("DB index"):
                (.refused, "Choose a database below the server's setting databases, which is 16 by default.")
            default: text.contains("invalid password") ? (.refused, "Check the password.") : (.serverError, "")
            }
        let separator = advice.isEmpty ? "" : text.hasSuffix(".") ? " " : ". "
        self.init(code, "\(address) answered: \(text)\(separator)\(advice)")
    }
}

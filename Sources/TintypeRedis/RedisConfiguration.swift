// SPDX-License-Identifier: Apache-2.0

/// The servers of a ``RedisClient``, its credentials and its limits.
///
/// The connection is not encrypted, because the hiredis of Debian 12 has no TLS. Run `stunnel` beside the program, or
/// use a private network.
///
/// ```swift
/// var configuration = RedisConfiguration(.standalone(RedisAddress("127.0.0.1")))
/// configuration.commandTimeBudget = .milliseconds(50)
/// let client = RedisClient(configuration)
/// ```
public struct RedisConfiguration: Sendable, Equatable {
    /// The ways to run Redis.
    public enum Deployment: Sendable, Equatable {
        /// One server.
        case standalone(RedisAddress)
        /// A Redis Cluster, with the addresses of some of its nodes.
        ///
        /// The client finds the others.
        case cluster([RedisAddress])
        /// Sentinels that know the master of a service.
        case sentinel([RedisAddress], service: String)
    }

    /// The servers.
    public var deployment: Deployment
    /// The user of the access control list; `nil`, the default, is Redis' user `default`.
    public var username: String?
    /// The password of the servers; `nil`, the default, sends no `AUTH`.
    ///
    /// Sentinels get no password.
    public var password: String?
    /// The number of the database; 0 by default.
    ///
    /// A cluster has only 0.
    public var database = 0
    /// The most connections to each node; 1 by default.
    ///
    /// Commands share a connection without waiting for each other.
    public var connectionsPerNode = 1
    /// The longest time to open a connection, and the longest silence of a server that owes a reply before the client
    /// opens a new connection; 1 s by default.
    public var connectTimeout = Duration.seconds(1)
    /// The time budget of a command that is run without its own; 20 ms by default.
    public var commandTimeBudget = Duration.milliseconds(20)
    /// The most commands that wait for a reply at once; 10,000 by default.
    ///
    /// Further ones fail with ``RedisError/Code/tooManyWaiting``.
    public var waitingLimit = 10_000
    /// The shortest pause between two attempts to reach a node; 50 ms by default.
    ///
    /// Each failure doubles the pause.
    public var firstReconnectDelay = Duration.milliseconds(50)
    /// The longest pause between two attempts to reach a node; 2 s by default.
    public var longestReconnectDelay = Duration.seconds(2)

    /// Creates a configuration with the default limits and without credentials.
    ///
    /// ```swift
    /// var configuration = RedisConfiguration(.cluster([RedisAddress("10.0.0.1"), RedisAddress("10.0.0.2")]))
    /// configuration.username = "images"
    /// configuration.password = token
    /// configuration.commandTimeBudget = .milliseconds(100)
    /// let client = RedisClient(configuration)
    /// ```
    public init(_ deployment: Deployment) {
        self.deployment = deployment
    }

    /// Creates a configuration from a URL.
    ///
    /// | Deployment | URL |
    /// |---|---|
    /// | one server | `redis://user:password@host:6379/0` |
    /// | cluster | `redis+cluster://user:password@host1:6379,host2:6379` |
    /// | Sentinel | `redis+sentinel://user:password@host1:26379,host2:26379/service` |
    ///
    /// The user, the password, the ports and the database are optional. Percent signs encode special characters of the
    /// user and the password. `redis+sentinel://` accepts a database after the service: `/service/1`.
    ///
    /// ```swift
    /// let client = RedisClient(try RedisConfiguration(url: "redis://:secret@127.0.0.1:6379/1"))
    /// ```
    ///
    /// - Throws: ``RedisError`` with the code ``RedisError/Code/invalidConfiguration``. Its message contains no
    ///   password.
    public init(url: String) throws(RedisError) {
        guard let separator = url.firstRange(of: "://") else {
            throw Self.refusal("A URL begins with redis://, redis+cluster:// or redis+sentinel://.")
        }
        let scheme = url[..<separator.lowerBound].lowercased()
        let rest = url[separator.upperBound...]
        let end = rest.firstIndex(of: "/") ?? rest.endIndex
        let path = rest[end...].split(separator: "/", omittingEmptySubsequences: true).map(String.init)
        // A password may contain an at sign, but a host must not.
        let at = rest[..<end].lastIndex(of: "@")
        let hosts = at.map { rest[rest.index(after: $0)..<end] } ?? rest[..<end]
        let defaultPort = scheme == "redis+sentinel" ? 26_379 : 6_379
        let addresses = try Self.addresses(hosts, defaultPort: defaultPort)
        switch scheme {
        case "redis":
            guard addresses.count == 1, path.count <= 1 else {
                throw Self.refusal(
                    "redis:// takes one host, and a database after it. Use redis+cluster:// for more hosts."
                )
            }
            self.init(.standalone(addresses[0]))
            self.database = try Self.database(path.first)
        case "redis+cluster":
            guard path.isEmpty || path == ["0"] else { throw Self.refusal("A cluster has only the database 0.") }
            self.init(.cluster(addresses))
        case "redis+sentinel":
            guard let service = path.first, path.count <= 2 else {
                throw Self.refusal(
                    "redis+sentinel:// needs the name of a service: redis+sentinel://host:26379/service."
                )
            }
            self.init(.sentinel(addresses, service: service))
            self.database = try Self.database(path.count > 1 ? path[1] : nil)
        case "rediss":
            throw Self.refusal(
                "This client has no TLS. Run stunnel beside it, and use redis:// with stunnel's address."
            )
        default:
            throw Self.refusal("A URL begins with redis://, redis+cluster:// or redis+sentinel://, not \(scheme)://.")
        }
        if let at { try self.readCredentials(rest[..<at]) }
    }

    private mutating func readCredentials(_ text: Substring) throws(RedisError) {
        let colon = text.firstIndex(of: ":")
        let (username, password) = (text[..<(colon ?? text.endIndex)], colon.map { text[text.index(after: $0)...] })
        guard let username = Self.decoded(username), let password = Self.decoded(password ?? "") else {
            throw Self.refusal("The user or the password contains an invalid percent sign. Write it as %25.")
        }
        guard !password.isEmpty else {
            throw Self.refusal("The URL names a user without a password; write user:password@host, or :password@host.")
        }
        self.username = username.isEmpty ? nil : username
        self.password = password
    }

    private static func addresses(_ text: Substring, defaultPort: Int) throws(RedisError) -> [RedisAddress] {
        var addresses: [RedisAddress] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let address = RedisAddress(text: part, defaultPort: defaultPort) else {
                throw self.refusal("\"\(part)\" is not an address such as host:\(defaultPort).")
            }
            addresses.append(address)
        }
        return addresses
    }

    private static func database(_ text: String?) throws(RedisError) -> Int {
        guard let text else { return 0 }
        guard let number = Int(text), number >= 0 else {
            throw self.refusal("\"\(text)\" is not the number of a database.")
        }
        return number
    }

    private static func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard digits.count == 2, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            else { return nil }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func refusal(_ message: String) -> RedisError { RedisError(.invalidConfiguration, message) }

    /// The error of a configuration that cannot work.
    var refusal: RedisError? {
        var addresses: [RedisAddress] = []
        switch self.deployment {
        case .standalone(let address): addresses = [address]
        case .cluster(let seeds): addresses = seeds
        case .sentinel(let sentinels, let service):
            addresses = sentinels
            if service.isEmpty { return Self.refusal("The service of Sentinel has no name.") }
        }
        if addresses.isEmpty { return Self.refusal("The deployment has no address.") }
        // A C string has no zero bytes inside.
        if let wrong = addresses.first(where: {
            $0.host.isEmpty || $0.host.utf8.contains(0) || !(1...65_535).contains($0.port)
        }) {
            return Self.refusal("\"\(wrong)\" is not an address of a server.")
        }
        if case .cluster = self.deployment, self.database != 0 {
            return Self.refusal("A cluster has only the database 0.")
        }
        if self.database < 0 { return Self.refusal("\(self.database) is not the number of a database.") }
        if self.username != nil, self.password == nil { return Self.refusal("The user has no password.") }
        if self.connectionsPerNode < 1 || self.waitingLimit < 1 {
            return Self.refusal("connectionsPerNode and waitingLimit must be at least 1.")
        }
        return nil
    }
}

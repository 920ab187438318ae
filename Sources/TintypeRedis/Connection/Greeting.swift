// SPDX-License-Identifier: Apache-2.0

/// The first commands on a connection, and the check of their replies.
struct Greeting {
    let commands: [RedisCommand]

    /// Creates the greeting of a node that must have this role.
    init(_ configuration: RedisConfiguration, role: RedisNodeStatus.Role) {
        var commands: [RedisCommand] = []
        if role != .sentinel {
            if let password = configuration.password {
                let user = configuration.username.map { [RedisArgument.text($0)] } ?? []
                commands.append(RedisCommand("AUTH", arguments: user + [.text(password)]))
            }
            if configuration.database != 0 {
                commands.append(RedisCommand("SELECT", .text(String(configuration.database))))
            }
            if case .sentinel = configuration.deployment { commands.append(RedisCommand("ROLE")) }
        }
        // Names the client in the server's list. A reply also shows that the server works.
        commands.append(RedisCommand("CLIENT", "SETNAME", "tintype"))
        self.commands = commands
    }

    /// The beginnings of errors that concern the connection, whatever the command.
    private static let refusals = ["NOAUTH", "LOADING", "DENIED", "ERR max number of clients"]

    /// Returns the error of a reply that makes the connection useless.
    static func refusal(of reply: RedisReply, to command: String, from address: RedisAddress) -> RedisError? {
        switch reply {
        case .error(let text):
            let error = RedisError(reply: text, from: address)
            // The name is dispensable: the user may lack the permission to set it, or a proxy may not know the command.
            if command == "CLIENT", !Self.refusals.contains(where: { text.hasPrefix($0) }) { return nil }
            return error.code == .serverError ? RedisError(.refused, error.message) : error
        case .value(let value):
            guard command == "ROLE", value.elements?.first?.text != "master" else { return nil }
            return RedisError(.readOnly, "\(address) is not the master that Sentinel has named. Try again later.")
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

import Tintype

/// The names to which a server answers, in addition to the names of its own machine.
///
/// This is a defence against DNS rebinding: a site lets its name resolve to this machine, so that its pages may read
/// the answers of the server. The browser still sends the name of the site as `Host`.
struct AllowedHosts: Sendable {
    private let names: Set<String>

    /// Creates a list of names without ports; upper and lower case do not matter.
    init(_ names: [String]) {
        self.names = Set(names.map { $0.lowercased() })
    }

    /// Whether a `Host` field names the server, with any port.
    ///
    /// Every browser sends the field, so requests without one are permitted.
    func contains(_ host: String?) -> Bool {
        // Most requests to a loopback address have this host.
        guard let host, !host.utf8.prefix(while: { $0 != UInt8(ascii: ":") }).elementsEqual("127.0.0.1".utf8) else {
            return true
        }
        return self.contains(name: host.lowercased())
    }

    private func contains(name host: String) -> Bool {
        let name = host.hasPrefix("[") ? String(host.prefix { $0 != "]" }) + "]" : String(host.prefix { $0 != ":" })
        return name == "localhost" || name == "[::1]" || name.hasPrefix("127.") && IPAddress(name) != nil
            || self.names.contains(name)
    }
}

extension ImageServer.Configuration {
    /// The names to which the listener for images answers, or `nil` if it answers to every name.
    ///
    /// On a loopback address without keys, only this check keeps out the pages in a browser on this machine.
    var allowedHosts: AllowedHosts? {
        let isOpenToBrowsers = self.listensOnLoopback && self.addresses.keys.isEmpty
        return isOpenToBrowsers || !self.hosts.isEmpty ? AllowedHosts(self.hosts) : nil
    }
}

// SPDX-License-Identifier: Apache-2.0

import Tintype

/// The names to which a server answers in addition to the names of its own machine.
///
/// A site can let its name lead to this machine (DNS rebinding). The browser then lets the pages of the site read the
/// answers of the server, but it still sends the name of the site as `Host`.
struct AllowedHosts: Sendable {
    private let names: Set<String>

    /// Creates a list of names, without ports; letters of both cases are the same.
    init(_ names: [String]) {
        self.names = Set(names.map { $0.lowercased() })
    }

    /// Whether a `Host` field names the server, with any port.
    ///
    /// Every browser sends the field, so requests without one are permitted.
    func contains(_ host: String?) -> Bool {
        // Most requests to a loopback address name it like this.
        guard let host, host.prefix(while: { $0 != ":" }) != "127.0.0.1" else { return true }
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
    /// Without keys on a loopback address, nothing else keeps the pages of a browser on this machine out.
    var allowedHosts: AllowedHosts? {
        let isOpenToBrowsers = self.listensOnLoopback && self.addresses.keys.isEmpty
        return isOpenToBrowsers || !self.hosts.isEmpty ? AllowedHosts(self.hosts) : nil
    }
}

// SPDX-License-Identifier: Apache-2.0

/// A reply of a cluster node that names another node: `MOVED 3999 127.0.0.1:6381` or `ASK 3999 127.0.0.1:6381`.
enum Redirection: Equatable {
    /// The other node serves the slot from now on.
    case moved(slot: Int, RedisAddress)
    /// The other node serves this command, after `ASKING`.
    case ask(RedisAddress)

    /// Reads the text of an error; returns `nil` for other errors.
    ///
    /// A missing or unknown host stands for the host that has answered.
    init?(_ text: String, from address: RedisAddress) {
        let words = text.split(separator: " ")
        guard words.count >= 3, let slot = Int(words[1]), (0..<KeySlot.count).contains(slot) else { return nil }
        // IPv6 addresses have no brackets here: the last colon precedes the port.
        guard let colon = words[2].lastIndex(of: ":"), let port = Int(words[2][words[2].index(after: colon)...]),
            (1...65_535).contains(port)
        else { return nil }
        let host = words[2][..<colon]
        guard !host.utf8.contains(0) else { return nil }
        let target = RedisAddress(host.isEmpty || host == "?" ? address.host : String(host), port: port)
        switch words[0] {
        case "MOVED": self = .moved(slot: slot, target)
        case "ASK": self = .ask(target)
        default: return nil
        }
    }
}

import TintypeCaching
import TintypeDownloading

/// The fields that belong to a connection rather than to a response, and are not stored (RFC 9111, 3.1).
enum HopByHopFields {
    private static let names: Set<String> = [
        "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
        "proxy-connection", "te", "transfer-encoding", "upgrade",
    ]

    /// The fields of `headers` that are stored, in their order.
    static func removed(from headers: HTTPHeaders) -> [ResponseRecord.Field] {
        let named = FieldList.elements(of: headers.values(for: "Connection")).map { $0.lowercased() }
        let names = self.names.union(named)
        return headers.compactMap { name, value in
            names.contains(name.lowercased()) ? nil : ResponseRecord.Field(name: name, value: value)
        }
    }
}

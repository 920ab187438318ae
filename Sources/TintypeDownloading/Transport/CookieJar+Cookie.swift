public import FoundationEssentials
import TintypeHTTP

extension CookieJar {
    /// A cookie that a jar holds.
    public struct Cookie: Sendable, Hashable {
        /// The host that it is sent to.
        public let domain: String
        /// Whether it is sent to the subdomains of `domain` as well.
        public let includesSubdomains: Bool
        /// The path below which it is sent.
        public let path: String
        /// Whether it is only sent over TLS.
        public let isSecure: Bool
        /// When it ends, or `nil` for the end of the jar.
        public let expires: Date?
        /// Its name.
        public let name: String
        /// Its value.
        public let value: String

        /// Creates a cookie.
        public init(
            name: String,
            value: String,
            domain: String,
            path: String = "/",
            includesSubdomains: Bool = false,
            isSecure: Bool = false,
            expires: Date? = nil
        ) {
            self.domain = domain
            self.includesSubdomains = includesSubdomains
            self.path = path
            self.isSecure = isSecure
            self.expires = expires
            self.name = name
            self.value = value
        }

        /// Reads a line of the Netscape cookie file format, in which libcurl lists its cookies.
        init?(line: String) {
            let text = line.hasPrefix("#HttpOnly_") ? line.dropFirst("#HttpOnly_".count) : line[...]
            let fields = text.split(separator: "\t", omittingEmptySubsequences: false)
            guard fields.count == 7, let seconds = Double(fields[4]) else { return nil }
            self.init(
                name: String(fields[5]),
                value: String(fields[6]),
                domain: String(fields[0].hasPrefix(".") ? fields[0].dropFirst() : fields[0]),
                path: String(fields[2]),
                includesSubdomains: fields[1] == "TRUE",
                isSecure: fields[3] == "TRUE",
                expires: seconds > 0 ? Date(timeIntervalSince1970: seconds) : nil
            )
        }

        /// The line of the cookie file format, or `nil` where a part would break it.
        var line: String? {
            // A semicolon begins the next cookie, in a request as well.
            let parts = [self.domain, self.path, self.name, self.value]
            guard !self.domain.isEmpty, !self.name.isEmpty, !self.name.utf8.contains(UInt8(ascii: "=")),
                parts.allSatisfy({ FieldText.isPlain($0) && !$0.utf8.contains(UInt8(ascii: ";")) }),
                // libcurl takes such lines for a comment, or for a field of a response.
                !self.domain.hasPrefix("#"), !self.domain.lowercased().hasPrefix("set-cookie")
            else { return nil }
            let seconds = self.expires.map { Int64(min(max(1, $0.timeIntervalSince1970), 1e15)) } ?? 0
            return [
                self.includesSubdomains ? ".\(self.domain)" : self.domain,
                self.includesSubdomains ? "TRUE" : "FALSE",
                self.path, self.isSecure ? "TRUE" : "FALSE", "\(seconds)", self.name, self.value,
            ].joined(separator: "\t")
        }
    }
}

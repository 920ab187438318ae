import CCurl
public import FoundationEssentials
import TintypeConcurrency
import TintypeHTTP

/// Cookies that servers set and that are sent back to them (RFC 6265), in memory.
///
/// It holds 3,000 cookies, 50 for each domain and 4,096 bytes in each; the oldest make room.
///
/// A request without a jar neither sends nor keeps cookies. One jar may serve many requests and downloaders;
/// requests with different jars never share a transfer.
public final class CookieJar: Sendable {
    let store: CookieStore
    /// What the jar is called in keys of caches: what its cookies bring is kept apart by it.
    public let name: String

    /// Creates an empty jar.
    ///
    /// - Parameter name: Such as that of the user whose cookies it holds. Without one the jar has a name that no other
    ///   has, so that what was loaded with it is not found in a cache after it is gone.
    public init(name: String? = nil) {
        self.store = CookieStore()
        self.name = name ?? "\(UInt64.random(in: .min ... .max)).\(UInt64.random(in: .min ... .max))"
    }

    /// The cookies in the jar, those that have ended left out.
    public var cookies: [Cookie] {
        self.store.lines().compactMap { Cookie(line: $0) }.filter { $0.expires.map { $0 > Date() } ?? true }
    }

    /// Puts a cookie into the jar, in place of one with the same name, domain and path.
    ///
    /// - Returns: Whether it is in the jar now; a part with a control character or a semicolon keeps it out, and so
    ///   does its size.
    @discardableResult
    public func insert(_ cookie: Cookie) -> Bool {
        guard let line = cookie.line, line.utf8.count <= CookieStore.maximumCookieSize else { return false }
        self.store.command(line)
        return true
    }

    /// Takes every cookie out.
    public func removeAll() {
        self.store.command("ALL")
    }
}

/// Where the cookies of one request come from and go to.
public enum CookiePolicy: Sendable, Hashable {
    /// No cookie is sent or kept, whatever jar there is for others.
    case disabled
    /// Cookies come from a jar, and go into it.
    case jar(CookieJar)

    /// The jar that a request uses which has this policy, or none, beside that of a configuration.
    static func jar(of policy: CookiePolicy?, configured: CookieJar?) -> CookieJar? {
        switch policy {
        case nil: configured
        case .disabled: nil
        case .jar(let jar): jar
        }
    }
}

// MARK: - Hashable

/// A jar is equal to itself alone.
extension CookieJar: Hashable {
    public static func == (left: CookieJar, right: CookieJar) -> Bool { left === right }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

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

// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import TintypeHTTP

/// The cookies that servers have set (RFC 6265), in memory.
///
/// It has at most 3,000 cookies, 50 for each domain, of 4,096 bytes each. The oldest make room.
///
/// A request without a jar neither sends nor stores cookies. One jar may serve many requests and downloaders. Requests
/// with different jars never share a transfer.
public final class CookieJar: Sendable {
    let store: CookieStore
    /// The name of the jar in cache keys, which keeps the responses to its cookies apart.
    public let name: String

    /// Creates an empty jar.
    ///
    /// ```swift
    /// var configuration = LoaderActor.Configuration()
    /// configuration.downloads.cookieJar = CookieJar(name: "anna")
    /// ```
    ///
    /// - Parameter name: The name, such as that of the user whose cookies it holds. By default the jar has a unique
    ///   name, so that no cache finds its responses after it is gone.
    public init(name: String? = nil) {
        self.store = CookieStore()
        self.name = name ?? "\(UInt64.random(in: .min ... .max)).\(UInt64.random(in: .min ... .max))"
    }

    /// The cookies in the jar that have not expired.
    public var cookies: [Cookie] {
        self.store.lines().compactMap { Cookie(line: $0) }.filter { $0.expires.map { $0 > Date() } ?? true }
    }

    /// Adds a cookie to the jar, which replaces one with the same name, domain and path.
    ///
    /// ```swift
    /// let jar = CookieJar()
    /// jar.insert(CookieJar.Cookie(name: "session", value: token, domain: "example.com", isSecure: true))
    /// print(jar.cookies.count)  // 1
    /// ```
    ///
    /// - Returns: Whether it is in the jar now. The jar refuses a cookie with a control character or a semicolon in a
    ///   part, or above the size limit.
    @discardableResult
    public func insert(_ cookie: Cookie) -> Bool {
        guard let line = cookie.line, line.utf8.count <= CookieStore.maximumCookieSize else { return false }
        self.store.command(line)
        return true
    }

    /// Removes all cookies.
    ///
    /// ```swift
    /// let jar = CookieJar(name: "anna")
    /// jar.removeAll()
    /// ```
    public func removeAll() {
        self.store.command("ALL")
    }
}

/// The use of cookies by a request.
public enum CookiePolicy: Sendable, Hashable {
    /// Sends and stores no cookies, whatever jar the configuration has.
    case disabled
    /// Sends the cookies of a jar, and stores cookies in it.
    case jar(CookieJar)

    /// Returns the jar for a request with this policy, or without one, given the configuration's jar.
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
        /// The host to which it is sent.
        public let domain: String
        /// Whether it is sent to the subdomains of `domain` as well.
        public let includesSubdomains: Bool
        /// The path below which it is sent.
        public let path: String
        /// Whether it is sent only over TLS.
        public let isSecure: Bool
        /// The date at which it expires, or `nil` for the end of the jar.
        public let expires: Date?
        /// Its name.
        public let name: String
        /// Its value.
        public let value: String

        /// Creates a cookie.
        ///
        /// ```swift
        /// let cookie = CookieJar.Cookie(name: "theme", value: "dark", domain: "example.com", includesSubdomains: true)
        /// ```
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

        /// The line of the cookie file format, or `nil` if a part would break it.
        var line: String? {
            // A semicolon begins the next cookie, in a request as well.
            let parts = [self.domain, self.path, self.name, self.value]
            guard !self.domain.isEmpty, !self.name.isEmpty, !self.name.utf8.contains(UInt8(ascii: "=")),
                parts.allSatisfy({ FieldText.isPlain($0) && !$0.utf8.contains(UInt8(ascii: ";")) }),
                // libcurl would read such a line as a comment, or as a field of a response.
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

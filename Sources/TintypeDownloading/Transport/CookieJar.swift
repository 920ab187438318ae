import CCurl
import FoundationEssentials
import TintypeConcurrency

/// Cookies that servers set and that are sent back to them (RFC 6265), in memory.
///
/// It holds 3,000 cookies, 50 for each domain and 4,096 bytes in each; the oldest make room.
///
/// A request without a jar neither sends nor keeps cookies. One jar may serve many requests and downloaders;
/// requests with different jars never share a transfer.
public final class CookieJar: Sendable {
    let store: CookieStore

    /// Creates an empty jar.
    public init() {
        self.store = CookieStore()
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

// MARK: - Hashable

/// A jar is equal to itself alone.
extension CookieJar: Hashable {
    public static func == (left: CookieJar, right: CookieJar) -> Bool { left === right }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

import CCurl
import Glibc
import TintypeConcurrency

/// A libcurl share that holds cookies, and a handle to look into it.
///
/// Sendable although unchecked: libcurl guards the share with the mutexes below, and the handle is only used
/// under `lock`.
final class CookieStore: @unchecked Sendable {
    let share: UnsafeMutableRawPointer?
    private let easy: UnsafeMutableRawPointer?
    private let lock = Locked(())
    /// One for each kind of data that libcurl shares.
    ///
    /// It locks in one callback and unlocks in another, which
    /// `Locked` does not offer.
    private let mutexes: UnsafeMutablePointer<pthread_mutex_t>
    private static let mutexCount = Int(CURL_LOCK_DATA_LAST.rawValue)

    init() {
        self.mutexes = .allocate(capacity: Self.mutexCount)
        for index in 0..<Self.mutexCount { pthread_mutex_init(self.mutexes + index, nil) }
        self.share = curl_share_init()
        self.easy = curl_easy_init()
        guard let share, let easy else { return }
        ccurl_share_set_lock(
            share,
            { _, data, _, mutexes in
                CookieStore.mutex(data, mutexes).map { _ = pthread_mutex_lock($0) }
            },
            { _, data, mutexes in
                CookieStore.mutex(data, mutexes).map { _ = pthread_mutex_unlock($0) }
            },
            self.mutexes
        )
        ccurl_share_data(share, CURL_LOCK_DATA_COOKIE)
        ccurl_share_data(share, CURL_LOCK_DATA_SSL_SESSION)
        ccurl_setopt_share(easy, share)
        ccurl_setopt_string(easy, CURLOPT_COOKIEFILE, "")
    }

    deinit {
        if let easy { curl_easy_cleanup(easy) }
        if let share { curl_share_cleanup(share) }
        for index in 0..<Self.mutexCount { pthread_mutex_destroy(self.mutexes + index) }
        self.mutexes.deallocate()
    }

    private static func mutex(
        _ data: curl_lock_data,
        _ mutexes: UnsafeMutableRawPointer?
    ) -> UnsafeMutablePointer<pthread_mutex_t>? {
        mutexes.map { $0.assumingMemoryBound(to: pthread_mutex_t.self) + Int(data.rawValue) }
    }

    /// Puts a cookie in, or does what a command such as `ALL` says (`CURLOPT_COOKIELIST`).
    func command(_ line: String) {
        self.lock.withLock { _ in
            guard let easy else { return }
            ccurl_setopt_string(easy, CURLOPT_COOKIELIST, line)
        }
    }

    /// The cookies, one line each, as `CURLINFO_COOKIELIST` gives them.
    func lines() -> [String] {
        self.lock.withLock { _ in
            var list: UnsafeMutablePointer<curl_slist>?
            guard let easy, ccurl_getinfo_list(easy, CURLINFO_COOKIELIST, &list) == CURLE_OK else { return [] }
            defer { curl_slist_free_all(list) }
            var lines: [String] = []
            var next = list
            while let entry = next {
                lines.append(String(cString: entry.pointee.data))
                next = entry.pointee.next
            }
            return lines
        }
    }
}

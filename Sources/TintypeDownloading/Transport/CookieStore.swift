// SPDX-License-Identifier: Apache-2.0

import CTintypeCurl
import Glibc
import TintypeConcurrency

/// A libcurl share that holds cookies, and a handle to look into it.
///
/// Sendable although unchecked: libcurl guards the share with the mutexes below, and the handle is only used
/// under `lock`.
final class CookieStore: @unchecked Sendable {
    private struct State {
        /// When each cookie came first, as a number that grows: libcurl does not tell.
        var ages: [CookieName: Int] = [:]
        var nextAge = 0
        /// The number of cookies since the last check of the limits.
        var newCount = 0
    }

    /// The identity of a cookie (RFC 6265, 5.3).
    private struct CookieName: Hashable {
        let domain: String
        let path: String
        let name: String
    }

    /// The most cookies in a jar, which is the least that RFC 6265 (6.1) demands.
    ///
    /// libcurl bounds a line, and nothing else.
    static let maximumCount = 3_000
    static let maximumCountPerDomain = 50
    static let maximumCookieSize = 4_096
    /// How many may come before the limits are looked at: each look lists all cookies.
    private static let reviewInterval = 100

    let share: UnsafeMutableRawPointer?
    private let easy: UnsafeMutableRawPointer?
    private let lock = Locked(State())
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
        self.lock.withLock { state in
            guard let easy else { return }
            ccurl_setopt_string(easy, CURLOPT_COOKIELIST, line)
            Self.note(1, in: easy, &state)
        }
    }

    /// Tells that a transfer has brought so many cookies; there may be too many now.
    func didReceive(_ count: Int) {
        self.lock.withLock { state in
            guard let easy else { return }
            Self.note(count, in: easy, &state)
        }
    }

    /// The cookies, one line each, as `CURLINFO_COOKIELIST` gives them.
    func lines() -> [String] {
        self.lock.withLock { state in
            guard let easy else { return [] }
            Self.keepToLimits(easy, &state)
            return Self.lines(of: easy)
        }
    }

    // MARK: Limits

    private static func note(_ count: Int, in easy: UnsafeMutableRawPointer, _ state: inout State) {
        state.newCount += count
        if state.newCount >= Self.reviewInterval { Self.keepToLimits(easy, &state) }
    }

    /// Takes out what is over a limit, the oldest first.
    private static func keepToLimits(_ easy: UnsafeMutableRawPointer, _ state: inout State) {
        state.newCount = 0
        var entries: [(line: String, name: CookieName, size: Int, age: Int)] = []
        for line in Self.lines(of: easy) {
            guard let cookie = CookieJar.Cookie(line: line) else { continue }
            let name = CookieName(domain: cookie.domain, path: cookie.path, name: cookie.name)
            let age = state.ages[name] ?? state.nextAge
            if age == state.nextAge { state.nextAge += 1 }
            entries.append((line, name, line.utf8.count, age))
        }
        state.ages.removeAll(keepingCapacity: true)
        var counts: [String: Int] = [:]
        for entry in entries.sorted(by: { $0.age > $1.age }) {
            let count = counts[entry.name.domain, default: 0]
            if entry.size <= Self.maximumCookieSize, count < Self.maximumCountPerDomain,
                state.ages.count < Self.maximumCount
            {
                counts[entry.name.domain] = count + 1
                state.ages[entry.name] = entry.age
            } else {
                Self.remove(entry.line, from: easy)
            }
        }
    }

    /// Puts a cookie in once more that has ended, which takes it out.
    private static func remove(_ line: String, from easy: UnsafeMutableRawPointer) {
        var fields = line.split(separator: "\t", omittingEmptySubsequences: false)
        guard fields.count == 7 else { return }
        fields[4] = "1"
        ccurl_setopt_string(easy, CURLOPT_COOKIELIST, fields.joined(separator: "\t"))
    }

    private static func lines(of easy: UnsafeMutableRawPointer) -> [String] {
        var list: UnsafeMutablePointer<curl_slist>?
        guard ccurl_getinfo_list(easy, CURLINFO_COOKIELIST, &list) == CURLE_OK else { return [] }
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

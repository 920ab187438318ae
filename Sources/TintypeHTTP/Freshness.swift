// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// The numbers that decide whether a stored response may be reused: RFC 9111 (4.2), RFC 5861 and RFC 8246.
public struct Freshness: Sendable, Hashable {
    /// The prohibitions and permissions of a response; later versions may add some.
    public struct Flags: OptionSet, Sendable, Hashable {
        /// One bit for each flag.
        public let rawValue: UInt8

        /// Creates flags from their bits.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// `no-cache` for the whole response: never reused without asking the origin.
        public static let noCache = Flags(rawValue: 1)
        /// `must-revalidate` and its like: never reused when stale.
        public static let mustRevalidate = Flags(rawValue: 2)
        /// `immutable`: while it is fresh, asking the origin is pointless.
        public static let immutable = Flags(rawValue: 4)
        /// `Vary: *`: no request is known to select it.
        public static let variesOnEverything = Flags(rawValue: 8)
        /// `no-store`: not kept, unless the response says otherwise.
        public static let noStore = Flags(rawValue: 16)
    }

    /// When the response was made, as far as its age tells: its age is the time since then.
    public var birth: Date
    /// The age in seconds until which the response is fresh; 0 without a valid statement.
    public var lifetime: Double
    /// For how many seconds after that it may be served while the origin is asked.
    public var staleWhileRevalidate: Double
    /// For how many seconds after that it may be served when the origin fails.
    public var staleIfError: Double
    /// The prohibitions and permissions of the response.
    public var flags: Flags

    /// Creates a freshness; without any more said, the response is stale from the start.
    ///
    /// ```swift
    /// let freshness = Freshness(birth: Date(), lifetime: 3_600, staleIfError: 86_400)
    /// ```
    public init(
        birth: Date,
        lifetime: Double = 0,
        staleWhileRevalidate: Double = 0,
        staleIfError: Double = 0,
        flags: Flags = []
    ) {
        self.birth = birth
        self.lifetime = lifetime
        self.staleWhileRevalidate = staleWhileRevalidate
        self.staleIfError = staleIfError
        self.flags = flags
    }

    /// The `current_age` of RFC 9111 (4.2.3), in seconds; never negative.
    ///
    /// ```swift
    /// let freshness = Freshness(birth: Date(timeIntervalSinceNow: -60), lifetime: 3_600)
    /// print(freshness.age(at: Date()))  // about 60
    /// ```
    public func age(at date: Date) -> Double {
        max(0, date.timeIntervalSince(self.birth))
    }

    /// Whether the age is under the lifetime.
    ///
    /// ```swift
    /// let freshness = Freshness(birth: Date(timeIntervalSinceNow: -60), lifetime: 3_600)
    /// print(freshness.isFresh(at: Date()))  // true
    /// ```
    public func isFresh(at date: Date) -> Bool {
        self.lifetime > self.age(at: date)
    }

    /// The seconds since it became stale; negative while it is fresh.
    ///
    /// ```swift
    /// let freshness = Freshness(birth: Date(timeIntervalSinceNow: -60), lifetime: 3_600)
    /// print(freshness.staleness(at: Date()))  // about -3,540
    /// ```
    public func staleness(at date: Date) -> Double {
        self.age(at: date) - self.lifetime
    }
}

// MARK: - Reading fields

extension Freshness {
    /// Works out freshness from the fields of a response (RFC 9111, 4.2.1 and 4.2.3).
    ///
    /// In a shared cache `s-maxage` and `proxy-revalidate` count as well.
    init(_ fields: HeaderFields, requestDate: Date, responseDate: Date, isShared: Bool) {
        let control = CacheControl(fields.values(for: "Cache-Control"))
        let date = fields["Date"].flatMap { HTTPDate.parse($0, now: responseDate) } ?? responseDate
        self.init(
            birth: responseDate.addingTimeInterval(
                -Self.initialAge(
                    age: fields.values(for: "Age"),
                    date: date,
                    requestDate: requestDate,
                    responseDate: responseDate
                )
            ),
            lifetime: Self.lifetime(control, expires: fields["Expires"], date: date, isShared: isShared),
            staleWhileRevalidate: control.seconds("stale-while-revalidate") ?? 0,
            staleIfError: control.seconds("stale-if-error") ?? 0
        )
        if control.forbidsReuse { self.flags.insert(.noCache) }
        // A cache that understands the status disregards `no-store` then (RFC 9111, 5.2.2.3).
        if control.has("no-store"), !control.has("must-understand") { self.flags.insert(.noStore) }
        if control.has("immutable") { self.flags.insert(.immutable) }
        let isSharedRule = isShared && (control.has("proxy-revalidate") || control.has("s-maxage"))
        if control.has("must-revalidate") || isSharedRule { self.flags.insert(.mustRevalidate) }
        if VarySelection.names(in: fields.values(for: "Vary")) == nil { self.flags.insert(.variesOnEverything) }
    }

    /// The `corrected_initial_age`.
    private static func initialAge(age: [String], date: Date, requestDate: Date, responseDate: Date) -> Double {
        // The first member of a list counts, and an invalid number is ignored (RFC 9111, 5.1).
        let value = FieldList.elements(of: age).first.flatMap { DeltaSeconds.parse($0) } ?? 0
        let apparentAge = max(0, responseDate.timeIntervalSince(date))
        let delay = max(0, responseDate.timeIntervalSince(requestDate))
        return max(apparentAge, value + delay)
    }

    /// Seconds; 0 for what is invalid or not said.
    private static func lifetime(_ control: CacheControl, expires: String?, date: Date, isShared: Bool) -> Double {
        if isShared, let seconds = control.seconds("s-maxage") { return seconds }
        if let seconds = control.seconds("max-age") { return seconds }
        // An invalid date, such as "0", is in the past (RFC 9111, 5.3).
        guard let expiry = expires.flatMap({ HTTPDate.parse($0, now: date) }) else { return 0 }
        return max(0, expiry.timeIntervalSince(date))
    }
}

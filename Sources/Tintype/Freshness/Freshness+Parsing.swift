import FoundationEssentials
import TintypeCaching

extension Freshness {
    /// Works out freshness from the fields of a response (RFC 9111, 4.2.1 and 4.2.3).
    ///
    /// `values` gives the values of all fields of a name, in their order. In a shared cache `s-maxage` and
    /// `proxy-revalidate` count as well.
    init(requestDate: Date, responseDate: Date, isShared: Bool, values: (String) -> [String]) {
        let control = CacheControl(values("Cache-Control"))
        let date = values("Date").first.flatMap { HTTPDate.parse($0, now: responseDate) } ?? responseDate
        self.init(
            birth: responseDate.addingTimeInterval(
                -Self.initialAge(
                    age: values("Age"),
                    date: date,
                    requestDate: requestDate,
                    responseDate: responseDate
                )
            ),
            lifetime: Self.lifetime(control, expires: values("Expires"), date: date, isShared: isShared),
            staleWhileRevalidate: control.seconds("stale-while-revalidate") ?? 0,
            staleIfError: control.seconds("stale-if-error") ?? 0
        )
        if control.forbidsReuse { self.flags.insert(.noCache) }
        // Who understands the status disregards `no-store` then (RFC 9111, 5.2.2.3).
        if control.has("no-store"), !control.has("must-understand") { self.flags.insert(.noStore) }
        if control.has("immutable") { self.flags.insert(.immutable) }
        let isSharedRule = isShared && (control.has("proxy-revalidate") || control.has("s-maxage"))
        if control.has("must-revalidate") || isSharedRule { self.flags.insert(.mustRevalidate) }
        if RequestSelection.names(in: values("Vary")) == nil { self.flags.insert(.variesOnEverything) }
    }

    /// The `corrected_initial_age`.
    private static func initialAge(age: [String], date: Date, requestDate: Date, responseDate: Date) -> Double {
        // Of a list the first member counts, and what is no number is ignored (RFC 9111, 5.1).
        let value = FieldList.elements(of: age).first.flatMap { DeltaSeconds.parse($0) } ?? 0
        let apparentAge = max(0, responseDate.timeIntervalSince(date))
        let delay = max(0, responseDate.timeIntervalSince(requestDate))
        return max(apparentAge, value + delay)
    }

    /// Seconds; 0 for what is invalid or not said.
    private static func lifetime(_ control: CacheControl, expires: [String], date: Date, isShared: Bool) -> Double {
        if isShared, let seconds = control.seconds("s-maxage") { return seconds }
        if let seconds = control.seconds("max-age") { return seconds }
        // What is no date, such as "0", is in the past (RFC 9111, 5.3).
        guard let expiry = expires.first.flatMap({ HTTPDate.parse($0, now: date) }) else { return 0 }
        return max(0, expiry.timeIntervalSince(date))
    }
}

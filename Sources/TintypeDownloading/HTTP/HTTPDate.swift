import CCurl
import FoundationEssentials

/// Reads the three forms of dates in HTTP (RFC 9110, section 5.6.7).
enum HTTPDate {
    /// The moment that `text` names, or `nil` where it is no date.
    static func parse(_ text: String) -> Date? {
        // libcurl reads other forms too, and bare numbers, none of which starts with the name of a day.
        let names: Set<Substring> = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
        guard text.utf8.count <= 64, names.contains(text.prefix(3)) else { return nil }
        let seconds = curl_getdate(text, nil)
        return seconds == -1 ? nil : Date(timeIntervalSince1970: Double(seconds))
    }
}

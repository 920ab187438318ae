import FoundationEssentials

@testable import Tintype

/// The loader's reading of dates, for the suite's own.
enum HTTPDateText {
    static func date(_ text: String) -> Date? {
        HTTPDate.parse(text, now: Date())
    }
}

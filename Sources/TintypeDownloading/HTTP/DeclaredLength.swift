/// What a response says about the length of its body (RFC 9112, section 6.3).
enum DeclaredLength: Equatable {
    case none
    case bytes(Int64)
    /// No number, or several that differ: nobody can tell where the body ends.
    case invalid

    init(_ headers: HTTPHeaders) {
        let values = headers.values(for: "Content-Length")
        // A transfer coding has its own end.
        guard let first = values.first, headers["Transfer-Encoding"] == nil else {
            self = .none
            return
        }
        let isNumber = !first.isEmpty && first.utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
        guard isNumber, values.allSatisfy({ $0 == first }) else {
            self = .invalid
            return
        }
        // One that no number holds is over every limit.
        self = .bytes(Int64(first) ?? .max)
    }
}

/// What a response says about the length of its body (RFC 9112, section 6.3).
package enum DeclaredLength: Equatable {
    case none
    case bytes(Int64)
    /// No number, or several that differ: there is no telling where the body ends.
    case invalid

    package init(_ headers: HeaderFields) {
        let values = headers.values(for: "Content-Length")
        // A transfer coding has its own end.
        guard let first = values.first, headers["Transfer-Encoding"] == nil else {
            self = .none
            return
        }
        guard FieldText.isNumber(first), values.allSatisfy({ $0 == first }) else {
            self = .invalid
            return
        }
        // One that no number holds is over every limit.
        self = .bytes(Int64(first) ?? .max)
    }
}

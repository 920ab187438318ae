/// An address that a policy denies, and why.
struct AddressDenial: Sendable {
    /// A range, and what its addresses are.
    struct Rule: Sendable {
        let name: String
        let range: AddressRange
    }

    let address: IPAddress
    /// The IPv4 address in it that is the reason, where it is not the address itself.
    let embedded: IPAddress?
    let rule: Rule
}

/// An address that a policy denies, and why.
struct AddressDenial: Sendable {
    /// A range, and what its addresses are.
    struct Rule: Sendable {
        let name: String
        let range: AddressRange
    }

    let address: IPAddress
    /// The address behind it that is the reason, where it is not the address itself.
    let destination: IPAddress?
    let rule: Rule
}

// SPDX-License-Identifier: Apache-2.0

// The errors of a policy: they name the rule, and the change that would allow the request.

extension DownloadError {
    /// Whether the network policy is the reason.
    var isRefusal: Bool {
        [
            .schemeNotAllowed, .malformedHost, .userInformationInURL, .portNotAllowed, .hostNotAllowed,
            .addressNotAllowed,
        ].contains(self.code)
    }

    static func schemeNotAllowed(_ scheme: NetworkPolicy.Scheme, at address: ResourceAddress) -> DownloadError {
        DownloadError(
            code: .schemeNotAllowed,
            message: "The network policy does not allow \(scheme.rawValue) URLs"
                + (scheme == .data ? "" : " such as \(shown(address))")
                + "; add the scheme to allowedSchemes if it is meant.",
            url: url(address)
        )
    }

    static func malformedHost(at address: ResourceAddress) -> DownloadError {
        DownloadError(
            code: .malformedHost,
            message: "The host of \(shown(address)) is neither a name nor an address that every reader reads alike; "
                + "write names in ASCII (xn--...) and addresses as 192.0.2.1 or [2001:db8::1].",
            url: url(address)
        )
    }

    static func userInformationInURL(at address: ResourceAddress) -> DownloadError {
        DownloadError(
            code: .userInformationInURL,
            message: "The URL of \(shown(address)) holds a user or a password, which the network policy does not "
                + "allow; take them out, and send credentials in the request.",
            url: url(address)
        )
    }

    static func portNotAllowed(_ port: Int, allowed: Set<Int>, at address: ResourceAddress) -> DownloadError {
        let ports = allowed.sorted().prefix(8).map(String.init).joined(separator: ", ")
        return DownloadError(
            code: .portNotAllowed,
            message: "The network policy does not allow port \(port) of \(shown(address)), only \(ports); "
                + "if it is meant, name the host with it in exceptions, or add it to allowedPorts for all hosts.",
            url: url(address)
        )
    }

    static func hostDenied(_ host: String, by rule: HostRule, at address: ResourceAddress) -> DownloadError {
        DownloadError(
            code: .hostNotAllowed,
            message: "The network policy denies the host \(host) of \(shown(address)) by its rule on \(rule); "
                + "if the host is meant, name it in exceptions, or take the rule out of deniedHosts.",
            url: url(address)
        )
    }

    static func hostNotAllowed(_ host: String, at address: ResourceAddress) -> DownloadError {
        DownloadError(
            code: .hostNotAllowed,
            message: "The network policy does not allow the host \(host) of \(shown(address)); "
                + "add it to allowedHosts if it is meant.",
            url: url(address)
        )
    }

    static func addressNotAllowed(_ denial: AddressDenial, at address: ResourceAddress) -> DownloadError {
        let destination = denial.destination.map { " leads to \($0), which" } ?? ""
        guard let rule = denial.rule else {
            return DownloadError(
                code: .addressNotAllowed,
                message: "The network policy denies \(shown(address)): the address \(denial.address) is none of those "
                    + "of its exception; add it there if it is meant.",
                url: url(address)
            )
        }
        return DownloadError(
            code: .addressNotAllowed,
            message: "The network policy denies \(shown(address)): the address \(denial.address)\(destination) "
                + "is in the \(rule.name) range \(rule.range); "
                + "if it is meant, name the host with it in exceptions, or add it to allowedAddresses for all hosts.",
            url: url(address)
        )
    }
}

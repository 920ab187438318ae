// SPDX-License-Identifier: Apache-2.0

/// An address that a policy denies, with the reason.
struct AddressDenial: Sendable {
    /// A range, with the name of its addresses.
    struct Rule: Sendable {
        let name: String
        let range: AddressRange
    }

    let address: IPAddress
    /// The denied address to which this one leads, if it is another one.
    let destination: IPAddress?
    /// The rule; `nil` if only an exception permits the request, and does not name this address.
    let rule: Rule?
}

extension NetworkPolicy {
    /// The permission of a request before its address is known.
    enum Permission {
        /// The lists permit the request; exceptions may permit further addresses.
        case lists([Exception])
        /// Only exceptions permit the request, to their own addresses.
        case exceptions([Exception])
    }

    /// Checks the URL of a request or of a redirect before a connection is made.
    ///
    /// If its host is a name, ``ConnectionCheck`` checks the addresses of the name when libcurl opens a socket.
    ///
    /// - Throws: ``DownloadError`` with one of the codes of policies.
    func check(_ address: ResourceAddress) throws(DownloadError) {
        let scheme = Self.scheme(of: address)
        let isWeb = scheme == .http || scheme == .https
        guard isWeb, self.restrictsTargets || !self.allowedSchemes.contains(scheme) else {
            guard self.allowedSchemes.contains(scheme) else { throw .schemeNotAllowed(scheme, at: address) }
            return
        }
        guard let target = ConnectionTarget(address.text) else { throw .malformedHost(at: address) }
        guard self.allowsUserInformation || !target.hasUserInformation else {
            throw .userInformationInURL(at: address)
        }
        let permission = try self.permission(for: target, of: address)
        if let literal = target.address, let denial = self.denial(of: literal, under: permission) {
            throw .addressNotAllowed(denial, at: address)
        }
    }

    /// Returns the permission of a request to `address`, which was checked.
    func permission(for address: ResourceAddress) -> Permission {
        // The usual case, without reading the URL.
        guard !self.exceptions.isEmpty, let target = ConnectionTarget(address.text) else { return .lists([]) }
        return (try? self.permission(for: target, of: address)) ?? .lists([])
    }

    private func permission(
        for target: ConnectionTarget,
        of address: ResourceAddress
    ) throws(DownloadError) -> Permission {
        let scheme = Self.scheme(of: address)
        let exceptions = self.exceptions.filter {
            $0.schemes.contains(scheme) && $0.ports.contains(target.port) && $0.host.matches(target.host)
        }
        do throws(DownloadError) {
            guard self.allowedSchemes.contains(scheme) else { throw .schemeNotAllowed(scheme, at: address) }
            try self.check(target, of: address)
            return .lists(exceptions)
        } catch {
            guard !exceptions.isEmpty else { throw error }
            return .exceptions(exceptions)
        }
    }

    private func check(_ target: ConnectionTarget, of address: ResourceAddress) throws(DownloadError) {
        if let allowedPorts, !allowedPorts.contains(target.port) {
            throw .portNotAllowed(target.port, allowed: allowedPorts, at: address)
        }
        if let rule = self.deniedHosts.first(where: { $0.matches(target.host) }) {
            throw .hostDenied(target.host, by: rule, at: address)
        }
        if let allowedHosts, !allowedHosts.contains(where: { $0.matches(target.host) }) {
            throw .hostNotAllowed(target.host, at: address)
        }
    }

    /// Returns the reason why an address is denied to a request, or `nil` if it is allowed.
    func denial(of address: IPAddress, under permission: Permission = .lists([])) -> AddressDenial? {
        switch permission {
        case .exceptions(let exceptions):
            guard !exceptions.contains(where: { $0.permits(address) }) else { return nil }
            return AddressDenial(address: address, destination: nil, rule: nil)
        case .lists(let exceptions):
            return exceptions.contains { $0.permits(address) } ? nil : self.denialByLists(of: address)
        }
    }

    private func denialByLists(of address: IPAddress) -> AddressDenial? {
        guard self.restrictsAddresses else { return nil }
        guard !self.isExplicitlyAllowed(address) else { return nil }
        if let rule = self.rule(denying: address) {
            return AddressDenial(address: address, destination: nil, rule: rule)
        }
        for destination in address.destinations(translationPrefixes: self.translationPrefixes) {
            guard !self.isExplicitlyAllowed(destination), let rule = self.rule(denying: destination) else { continue }
            return AddressDenial(address: address, destination: destination, rule: rule)
        }
        return nil
    }

    /// Whether addresses must be checked.
    var restrictsAddresses: Bool { !self.deniedAddresses.isEmpty || self.exceptions.contains { $0.addresses != nil } }

    /// Whether more than the scheme must be checked.
    private var restrictsTargets: Bool {
        self.restrictsAddresses || !self.deniedHosts.isEmpty || self.allowedHosts != nil || self.allowedPorts != nil
            || !self.allowsUserInformation
    }

    private func isExplicitlyAllowed(_ address: IPAddress) -> Bool {
        self.allowedAddresses.contains { $0.contains(address) }
    }

    private func rule(denying address: IPAddress) -> AddressDenial.Rule? {
        for set in self.deniedAddresses {
            if let range = set.range(of: address) { return AddressDenial.Rule(name: set.name, range: range) }
        }
        return nil
    }

    private static func scheme(of address: ResourceAddress) -> Scheme {
        switch address.scheme {
        case .http: .http
        case .https: .https
        case .file: .file
        case .data: .data
        }
    }
}

extension NetworkPolicy.Exception {
    fileprivate func permits(_ address: IPAddress) -> Bool {
        self.addresses?.contains { $0.contains(address) } ?? true
    }
}

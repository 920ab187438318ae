// SPDX-License-Identifier: Apache-2.0

import Tintype

extension ImageServer.Configuration {
    /// Checks the settings, each by itself and with the others.
    ///
    /// A server that other machines reach needs keys, unless ``isInsecure`` says that everyone may use it.
    ///
    /// ```swift
    /// var configuration = ImageServer.Configuration()
    /// configuration.listenAddress = "0.0.0.0:8080"
    /// try configuration.check()  // throws: there are no keys
    /// ```
    ///
    /// - Throws: ``SettingError`` for the first mistake.
    public func check() throws(SettingError) {
        try self.checkListeners()
        try self.checkHosts()
        try self.checkPage()
        try self.addresses.check()
        try self.images.check()
        try self.sources.check()
        try self.load.check()
        try Self.require(self.caching.lifetime >= .zero, "lifetime", "must not be negative")
        try Self.require(self.caching.errorLifetime >= .zero, "error-lifetime", "must not be negative")
        for (name, text) in [
            ("secret", self.secret), ("purge-secret", self.purgeSecret), ("health-path", self.healthPath),
        ] {
            let isValid = text.map { !$0.isEmpty && !$0.hasControlCharacters } ?? true
            try Self.require(isValid, name, "must be text without control characters, or absent")
        }
        try Self.require(
            self.allowedOrigin.map { $0 == "*" || Self.isOrigin($0) } ?? true,
            "allow-origin",
            "must be * or one origin without a path, such as https://www.example.org"
        )
        try Self.require(
            self.healthPath.map { $0.hasPrefix("/") && $0 != "/" } ?? true,
            "health-path",
            "must be a slash and a name"
        )
    }

    /// Whether only programs on this machine reach the listener for images.
    var listensOnLoopback: Bool {
        (try? ListeningSocket.isLoopback(self.listenAddress)) ?? false
    }

    /// Whether a text has the form of an `Origin` field: a scheme, a host and perhaps a port.
    private static func isOrigin(_ text: String) -> Bool {
        guard let mark = text.firstRange(of: "://"), mark.lowerBound != text.startIndex else { return false }
        let host = text[mark.upperBound...].utf8
        return !host.isEmpty && text.utf8.allSatisfy { 0x21..<0x7F ~= $0 }
            && !host.contains { "/?#@\\,;".utf8.contains($0) }
    }

    private func checkListeners() throws(SettingError) {
        try Self.checkAddress(self.listenAddress, "listen")
        if let metricsAddress = self.metricsAddress {
            try Self.checkAddress(metricsAddress, "metrics-listen")
            try Self.require(
                metricsAddress != self.listenAddress || metricsAddress.hasSuffix(":0"),
                "metrics-listen",
                "must be another address than listen"
            )
        }
        guard self.isInsecure || !self.addresses.keys.isEmpty || self.listensOnLoopback else {
            throw SettingError(
                "Other machines reach \(self.listenAddress), and without keys everyone could use the server. Give a "
                    + "key and a salt, listen on 127.0.0.1, or permit it with --insecure."
            )
        }
    }

    private func checkHosts() throws(SettingError) {
        for host in self.hosts {
            let name = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
            let isAddress = IPAddress(name) != nil
            let isName =
                !host.isEmpty && host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"/:@*[]?#\\".utf8.contains($0) }
            try Self.require(
                name == host ? isName : isAddress,
                "host",
                "must be a name as in Host fields without its port, such as images.example.org or [fd00::1], and not "
                    + host
            )
        }
    }

    /// Refuses a page that would sign URLs for other machines.
    private func checkPage() throws(SettingError) {
        guard self.showsPage != true || self.addresses.keys.isEmpty || self.listensOnLoopback || self.isInsecure else {
            throw SettingError(
                "The page of a server with keys signs URLs for everyone, and other machines reach "
                    + "\(self.listenAddress). Switch it off with --no-ui, or permit it with --insecure."
            )
        }
    }

    private static func checkAddress(_ address: String, _ name: String) throws(SettingError) {
        do throws(ListenError) {
            _ = try ListeningSocket.isLoopback(address)
        } catch {
            throw SettingError("The setting \(name) is wrong: \(error.description)")
        }
        var host = String(address[..<(address.lastIndex(of: ":") ?? address.startIndex)])
        if host.hasPrefix("[") { host = String(host.dropFirst().dropLast()) }
        try Self.require(
            host.isEmpty || host == "localhost" || IPAddress(host) != nil,
            name,
            "must name an IP address and a port, such as 127.0.0.1:8080 or [::1]:8080, and not \(address)"
        )
    }

    /// Throws an error about a setting unless a condition holds.
    fileprivate static func require(
        _ condition: Bool,
        _ name: String,
        _ rule: @autoclosure () -> String
    ) throws(SettingError) {
        guard condition else { throw SettingError("The setting \(name) \(rule()).") }
    }
}

extension ImageServer.Configuration.Addresses {
    fileprivate func check() throws(SettingError) {
        typealias Configuration = ImageServer.Configuration
        try Configuration.require((1...32).contains(self.signatureSize), "signature-size", "must be 1 to 32")
        try Configuration.require(
            !self.argumentsSeparator.isEmpty && !self.argumentsSeparator.contains("/"),
            "arguments-separator",
            "must be text without a slash"
        )
        try Configuration.require(
            self.replacements.allSatisfy { !$0.pattern.isEmpty },
            "replace",
            "must have a pattern before each ="
        )
        try Configuration.require(
            !self.usesOnlyPresets || !self.presets.isEmpty,
            "only-presets",
            "needs a preset, because URLs could name none"
        )
        for (name, options) in self.presets.sorted(by: { $0.key < $1.key }) {
            try self.checkPreset(name, options)
        }
    }

    /// Checks the name of a preset, and that the presets in it exist.
    private func checkPreset(_ name: String, _ options: String) throws(SettingError) {
        let separator = self.argumentsSeparator
        guard !name.isEmpty, !name.contains("/"), !name.contains(separator) else {
            throw SettingError("The preset \(name)=\(options) needs a name without / and \(separator).")
        }
        for option in options.split(separator: "/") {
            let parts = option.split(separator: separator, omittingEmptySubsequences: false)
            guard parts.count > 1, let first = parts.first, !first.isEmpty else {
                throw SettingError(
                    "The preset \(name) has \(option) among its options; write options as name\(separator)value, with "
                        + "slashes between them."
                )
            }
            guard first == "preset" || first == "pr" else { continue }
            if let missing = parts.dropFirst().first(where: { self.presets[String($0)] == nil }) {
                throw SettingError("The preset \(name) names the preset \(missing), which does not exist.")
            }
        }
    }
}

extension ImageServer.Configuration.Images {
    /// The longest side of a result, which is the longest that the JPEG encoder writes.
    static let longestSide = 65_500

    fileprivate func check() throws(SettingError) {
        typealias Configuration = ImageServer.Configuration
        try Configuration.require((1...100).contains(self.quality), "quality", "must be 1 to 100")
        try Configuration.require(
            self.qualities.values.allSatisfy { (1...100).contains($0) },
            "format-quality",
            "must be 1 to 100 for each format"
        )
        try Configuration.require((0...9).contains(self.pngLevel), "png-level", "must be 0 to 9")
        try Configuration.require((0...6).contains(self.webpEffort), "webp-effort", "must be 0 to 6")
        try Configuration.require(
            !self.preferredFormats.isEmpty && self.preferredFormats.allSatisfy { WrittenFormats.all.contains($0) },
            "preferred-formats",
            "must name at least one of \(WrittenFormats.all.map { $0.name }.joined(separator: ", "))"
        )
        try Configuration.require(self.maximumFrames >= 1, "max-frames", "must be at least 1")
        try Configuration.require(
            (1...Self.longestSide).contains(self.maximumResultSide),
            "max-result-side",
            "must be 1 to \(Self.longestSide)"
        )
        try Configuration.require((0...1).contains(self.watermarkOpacity), "watermark-opacity", "must be 0 to 1")
        try Configuration.require(
            self.fallbackStatus.map { (200...599).contains($0) } ?? true,
            "fallback-status",
            "must be 200 to 599"
        )
        try Configuration.require(
            (self.fallbackLifetime ?? .zero) >= .zero,
            "fallback-lifetime",
            "must not be negative"
        )
    }
}

extension ImageServer.Configuration.Sources {
    fileprivate func check() throws(SettingError) {
        for pattern in self.allowed {
            guard (try? AllowedSources(patterns: [pattern])) != nil else {
                throw SettingError(
                    "The pattern \(pattern) of allow is not the beginning of a source URL; write one such as "
                        + "https://*.example.org/, with one of \(SourcePattern.schemes.joined(separator: ", "))."
                )
            }
        }
        guard let s3 = self.s3, (s3.accessKey == nil) != (s3.secretKey == nil) else { return }
        throw SettingError("The access key of S3 and its secret belong together; give both or neither of them.")
    }
}

extension ImageServer.Configuration.Load {
    fileprivate func check() throws(SettingError) {
        typealias Configuration = ImageServer.Configuration
        for (name, time) in [
            ("answer-time", self.answerTime), ("queue-time", self.queueTime), ("head-time", self.headTime),
            ("write-time", self.writeTime),
        ] {
            try Configuration.require(time > .zero, name, "must be over zero")
        }
        try Configuration.require(self.idleTime >= .zero, "idle-time", "must not be negative")
        try Configuration.require(self.drainTime >= .zero, "drain-time", "must not be negative")
        try Configuration.require(self.connectionCount >= 1, "connections", "must be at least 1")
        try Configuration.require((self.queueCount ?? 1) >= 1, "queue-size", "must be at least 1")
    }
}

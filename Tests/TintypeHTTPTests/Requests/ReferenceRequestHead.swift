// SPDX-License-Identifier: Apache-2.0

import TintypeHTTP

/// A plain reading of RFC 9112 line by line, to compare with the parser.
///
/// Needs a whole head, and knows no limits except that of methods.
enum ReferenceRequestHead: Equatable {
    struct Parts: Equatable {
        var method = ""
        var target = ""
        var minorVersion = 0
        var host: String?
        var contentLength: Int?
        var keepsAlive = false
        var expectsContinue = false
        var fields: [[String]] = []
        var byteCount = 0
    }

    case head(Parts)
    case refused(status: Int)

    private struct Refusal: Error {
        var status = 400
    }

    init(_ bytes: [UInt8]) {
        do throws(Refusal) { self = .head(try Self.read(bytes)) } catch { self = .refused(status: error.status) }
    }

    init?(_ outcome: RequestHeadParser.Outcome) {
        switch outcome {
        case .incomplete: return nil
        case .refused(let refusal): self = .refused(status: refusal.status)
        case .head(let head, let byteCount):
            self = .head(
                Parts(
                    method: head.method.name,
                    target: head.target,
                    minorVersion: head.minorVersion,
                    host: head.host,
                    contentLength: head.contentLength,
                    keepsAlive: head.keepsAlive,
                    expectsContinue: head.expectsContinue,
                    fields: head.fields.map { [$0.name, $0.value] },
                    byteCount: byteCount
                )
            )
        }
    }

    private static func read(_ bytes: [UInt8]) throws(Refusal) -> Parts {
        var parts = Parts()
        var lines: [[UInt8]] = []
        var start = bytes.starts(with: [13, 10]) ? 2 : 0
        while true {
            var end = start
            while end + 1 < bytes.count, bytes[end] != 13 || bytes[end + 1] != 10 { end += 1 }
            guard end + 1 < bytes.count else { throw Refusal() }
            lines.append(Array(bytes[start..<end]))
            start = end + 2
            if lines.last == [] { break }
        }
        parts.byteCount = start
        let authority = try self.readRequestLine(lines[0], &parts)
        for line in lines.dropFirst().dropLast() { parts.fields.append(try self.field(line)) }
        try self.readFields(&parts)
        parts.host = authority ?? parts.host
        return parts
    }

    private static func readRequestLine(_ line: [UInt8], _ parts: inout Parts) throws(Refusal) -> String? {
        let words = line.split(separator: 32, omittingEmptySubsequences: false)
        guard let method = words.first, self.isToken(method), method.count <= 32, words.count > 1,
            words[1].allSatisfy({ $0 > 32 && $0 != 127 && $0 != 35 })
        else { throw Refusal() }
        parts.method = String(decoding: method, as: UTF8.self)
        var target = ""
        for byte in words[1] {
            target += byte < 128 ? String(UnicodeScalar(byte)) : "%" + String(byte, radix: 16, uppercase: true)
        }
        var authority: String?
        if !target.hasPrefix("/"), target != "*" || parts.method != "OPTIONS" {
            let scheme = ["http://", "https://"].first { target.lowercased().hasPrefix($0) }
            guard let scheme else { throw Refusal() }
            let rest = target.dropFirst(scheme.count)
            let host = String(rest.prefix { !"/?".contains($0) })
            let isASCII = words[1].dropFirst(scheme.count).prefix(host.count).allSatisfy { $0 < 128 }
            guard isASCII, self.isHost(host) else { throw Refusal() }
            authority = host
            target = String(rest.dropFirst(host.count))
            if !target.hasPrefix("/") { target = "/" + target }
        }
        parts.target = target
        guard words.count == 3, words[2].count == 8, words[2].starts(with: "HTTP/".utf8),
            let major = self.digit(words[2].dropFirst(5)), words[2].dropFirst(6).first == 46,
            let minor = self.digit(words[2].dropFirst(7)), major > 0
        else { throw Refusal() }
        guard major == 1 else { throw Refusal(status: 505) }
        parts.minorVersion = minor == 0 ? 0 : 1
        return authority
    }

    private static func field(_ line: [UInt8]) throws(Refusal) -> [String] {
        guard let colon = line.firstIndex(of: 58), self.isToken(line[..<colon]) else { throw Refusal() }
        let value = line[(colon + 1)...]
        guard value.allSatisfy({ $0 == 9 || $0 >= 32 && $0 != 127 }) else { throw Refusal() }
        return [String(decoding: line[..<colon], as: UTF8.self), self.trimmed(String(decoding: value, as: UTF8.self))]
    }

    private static func readFields(_ parts: inout Parts) throws(Refusal) {
        let named = Dictionary(grouping: parts.fields) { $0[0].lowercased() }
        func values(_ name: String) -> [String] { named[name]?.map { $0[1] } ?? [] }
        let hosts = values("host")
        let lengths = values("content-length")
        let codings = values("transfer-encoding")
        guard hosts.count <= 1, hosts.allSatisfy(self.isHost), lengths.count <= 1, lengths.allSatisfy(self.isNumber)
        else { throw Refusal() }
        parts.host = hosts.first
        guard parts.minorVersion == 0 || parts.host != nil else { throw Refusal() }
        if !codings.isEmpty { throw Refusal(status: lengths.isEmpty && parts.minorVersion > 0 ? 501 : 400) }
        parts.contentLength = lengths.first.flatMap { Int($0) }
        if parts.minorVersion > 0 {
            let expectations = Set(values("expect").map { $0.lowercased() })
            guard expectations.isSubset(of: ["100-continue"]) else { throw Refusal(status: 417) }
            parts.expectsContinue = !expectations.isEmpty
        }
        let options = values("connection").flatMap { $0.split(separator: ",") }.map {
            self.trimmed(String($0)).lowercased()
        }
        parts.keepsAlive = !options.contains("close") && (parts.minorVersion > 0 || options.contains("keep-alive"))
    }

    private static func isToken(_ bytes: ArraySlice<UInt8>) -> Bool {
        !bytes.isEmpty
            && bytes.allSatisfy { byte in
                48...57 ~= byte || 65...90 ~= byte || 97...122 ~= byte || "!#$%&'*+-.^_`|~".utf8.contains(byte)
            }
    }

    private static func isNumber(_ text: String) -> Bool {
        text.utf8.allSatisfy { 48...57 ~= $0 } && Int(text) != nil
    }

    private static func isHost(_ text: String) -> Bool {
        // Almost all mutations leave the host as it is, and the regular expression is slow.
        if ["example.com", "[::1]:80", "b:8"].contains(text) { return true }
        guard text.utf8.allSatisfy({ $0 < 128 }), !text.contains("..") else { return false }
        return text.wholeMatch(of: /(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+,;=%\-]+)(:[0-9]{0,5})?/) != nil
    }

    private static func digit(_ bytes: ArraySlice<UInt8>) -> Int? {
        bytes.first.flatMap { 48...57 ~= $0 ? Int($0) - 48 : nil }
    }

    private static func trimmed(_ text: String) -> String {
        var text = Substring(text)
        while let first = text.unicodeScalars.first, first == " " || first == "\t" { text.unicodeScalars.removeFirst() }
        while let last = text.unicodeScalars.last, last == " " || last == "\t" { text.unicodeScalars.removeLast() }
        return String(text)
    }
}

// SPDX-License-Identifier: Apache-2.0

import TintypeTestSupport

/// Random URLs composed of parts about which parsers are known to disagree.
enum URLForgery {
    private static let hosts = [
        "127.0.0.1", "127.1", "0x7f.1", "0177.0.0.1", "2130706433", "0", "10.0.0.1", "169.254.169.254", "[::1]",
        "[::ffff:10.0.0.1]", "[64:ff9b::7f00:1]", "[fe80::1%25lo]", "localhost", "10.0.0.1.nip.io", "example.org",
        "93.184.216.34", "%31%32%37.0.0.1", "１２７.0.0.1", "127。0。0。1",
    ]
    private static let separators = [
        "@", ":@", "\\", "\\@", "#", "#@", "?", "?@", "/", "//", "/@", ":", ":80", ":80@", ":443", ".", "%00", "%2f",
        "%40",
        "%23", "%5c", " ", "\t", "\u{AD}", "\u{200B}", ";", ",", "&", "'", "[", "]", "%", "%25",
    ]

    /// The URLs, which are the same in every run.
    static let all: [String] = {
        var generator = SeededGenerator(seed: 5)
        return (0..<600).map { _ in "http://" + Self.authority(using: &generator) }
    }()

    private static func authority(using generator: inout SeededGenerator) -> String {
        var text = ""
        for _ in 0..<Int.random(in: 1...3, using: &generator) {
            if Bool.random(using: &generator) { text += Self.pick(Self.separators, &generator) }
            text += Self.pick(Self.hosts, &generator)
            if Bool.random(using: &generator) { text += Self.pick(Self.separators, &generator) }
        }
        return text
    }

    private static func pick(_ pieces: [String], _ generator: inout SeededGenerator) -> String {
        pieces.randomElement(using: &generator) ?? ""
    }
}

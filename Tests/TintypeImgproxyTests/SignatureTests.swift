// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TintypeImgproxy

/// Signatures of URLs, and the attempts to pass without one.
@Suite struct SignatureTests {
    struct Vector: Sendable, CustomTestStringConvertible {
        let key: String
        let salt: String
        let path: String
        let size: Int
        let signature: String

        init(_ key: String, _ salt: String, _ path: String, _ size: Int, _ signature: String) {
            self.key = key
            self.salt = salt
            self.path = path
            self.size = size
            self.signature = signature
        }

        var testDescription: String { "\(self.path) \(self.size)" }

        func settings() throws -> AddressSettings {
            let keys = try signatureKeys(self.key, self.salt)
            let signer = try URLSigner(keys: keys, size: self.size)
            return openSettings { $0.signer = signer }
        }
    }

    private static let key = "943b421c9eb07c83"
    private static let salt = "520f986b998682f1"
    private static let source = "aHR0cDovL2ltYWdlcy5leGFtcGxlL2NhdC5qcGc"

    private static let vectors = [
        Vector(
            Self.key,
            Self.salt,
            "/rs:fit:50:50/plain/local:///a.png",
            32,
            "HjuBah7U8NmMaIy7ODWlr-pzSO-eSZFQQgQE5SQk7O0"
        ),
        Vector(Self.key, Self.salt, "/rs:fit:50:50/plain/local:///a.png", 8, "HjuBah7U8Nk"),
        Vector(
            Self.key,
            Self.salt,
            "/plain/http://example.com/p%20q.jpg@webp",
            32,
            "5j5ADkUOHEiK2W5urhp4sBss-GjCBaRUQv2K4Y5o0QI"
        ),
        Vector(
            "00ff10",
            "00",
            "/w:120/aHR0cDovL2V4YW1wbGUuY29tL2EuanBn.png",
            32,
            "XoTqMsrZs97qbQaI7_ZzVwIfLR_EDA-WwhnZ7iap4ls"
        ),
        Vector(
            "6b6579",
            "73616c74",
            "/pr:thumb/g:fp:0.25:0.75/plain/s3://bucket/k/%D1%84.png@avif",
            16,
            "L17bdBADwCHoeKRzB-ufuA"
        ),
        // Made by the client of PyPI.
        Vector(
            Self.key,
            Self.salt,
            "/g:ce/rs:fill:300:200:0/\(Self.source)",
            32,
            "999W1hZzbILIBBSBbDe2Rugq7jkuZs7WrcfvRjiSv0o"
        ),
    ]

    @Test(arguments: vectors)
    func `a signature is the one that other programs compute`(vector: Vector) throws {
        let keys = try signatureKeys(vector.key, vector.salt)
        let signed = try URLSigner(keys: keys, size: vector.size).sign(vector.path)
        #expect(signed == "/\(vector.signature)\(vector.path)")
    }

    @Test(arguments: vectors)
    func `only the exact signature of a path passes`(vector: Vector) throws {
        var settings = try vector.settings()
        settings.presets = ["thumb": "rs:fill:50:50"]
        let good = "/\(vector.signature)\(vector.path)"
        #expect(try refusal(good, settings) == nil)
        // The query is not signed.
        #expect(try refusal("\(good)?a=b", settings) == nil)
        let wrong = [
            "/unsafe\(vector.path)", "/\(vector.signature)=\(vector.path)",
            "/\(vector.signature.dropLast())\(vector.path)",
            "/\(vector.signature)A\(vector.path)", "/\(vector.signature.lowercased())\(vector.path)",
            "/:\(vector.path)",
            "/\(vector.signature)/w:1\(vector.path)", "\(good)x",
            "/\(vector.signature)/\(vector.signature)\(vector.path)",
            "/w:1/\(vector.signature)\(vector.path)", "/%\(vector.signature)\(vector.path)",
        ]
        for target in wrong {
            let error = try #require(try refusal(target, settings))
            #expect(error.status == 403 && error.publicText == "Forbidden")
        }
    }

    @Test func `a signature is checked before the options are read`() throws {
        let settings = try Self.vectors[0].settings()
        #expect(try refusal("/unsafe/rs:fill:4:4/plain/local:///a.png", settings)?.status == 403)
        #expect(try refusal("/unsafe/no-such-option:1/###", settings)?.status == 403)
        #expect(try refusal("/unsafe/rs:fit", settings)?.status == 403)
    }

    @Test func `each key is good for signatures, and the first one makes them`() throws {
        let all = try URLSigner(keys: signatureKeys("aa", "01") + signatureKeys("bb", "02"))
        let second = try URLSigner(keys: signatureKeys("bb", "02"))
        let mixed = try URLSigner(keys: signatureKeys("bb", "01"))
        let settings = openSettings { $0.signer = all }
        let path = "/w:9/plain/local:///a.png"
        #expect(try refusal(all.sign(path), settings) == nil)
        #expect(try refusal(second.sign(path), settings) == nil)
        #expect(try refusal(mixed.sign(path), settings)?.status == 403)
        #expect(all.sign(path) != second.sign(path))
    }

    @Test func `the signature of a path holds for its damaged form`() throws {
        let signer = try URLSigner(keys: signatureKeys(Self.key, Self.salt))
        let settings = openSettings { $0.signer = signer }
        let good = signer.sign("/rs:fit:50:50/plain/http://e.example/a.png")
        let damaged = good.replacing("rs:fit:50:50", with: "rs%3Afit%3A50%3A50").replacing("http://", with: "http:/")
        #expect(try read(damaged, settings) == read(good, settings))
        let doubled = "/" + good.replacing("/rs:", with: "//rs:")
        #expect(try read(doubled, settings) == read(good, settings))
    }

    @Test func `a trusted text passes as a signature, and nothing like it`() throws {
        var settings = try Self.vectors[0].settings()
        settings.trustedSignatures = ["trusted", ""]
        #expect(try refusal("/trusted/w:9/plain/local:///a.png", settings) == nil)
        #expect(try refusal("/truste/w:9/plain/local:///a.png", settings)?.status == 403)
        #expect(try refusal("/trustee/w:9/plain/local:///a.png", settings)?.status == 403)
    }

    @Test(arguments: ["unsafe", "_", "insecure", "x"])
    func `any text passes without keys`(signature: String) throws {
        #expect(try read("/\(signature)/w:9/plain/local:///a.png").options.width == 9)
    }

    @Test func `an option in place of the signature is reported`() throws {
        let error = try #require(try refusal("/rs:fit:5:5/plain/local:///a.png"))
        #expect(error.status == 403 && error.message.contains("/unsafe/"))
    }

    @Test(arguments: [0, -1, 33])
    func `a size that no signature has is refused`(size: Int) {
        let keys = [SignatureKeys(key: [1], salt: [2])]
        #expect(throws: AddressSettingsError.self) { try URLSigner(keys: keys, size: size) }
    }

    @Test func `a signer needs keys`() {
        #expect(throws: AddressSettingsError.self) { try URLSigner(keys: []) }
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype

@testable import TintypeCluster

struct ColdTierConfigurationTests {
    @Test(arguments: [
        ("s3://photos?region=eu-central-1", "https://photos.s3.eu-central-1.amazonaws.com/o"),
        ("S3://photos/a/b/?region=eu-central-1", "https://photos.s3.eu-central-1.amazonaws.com/a/b/o"),
        ("s3://photos/a%20b?endpoint=http://minio:9000", "http://minio:9000/photos/a%20b/o"),
        ("s3://photos//a//?endpoint=http%3A%2F%2Fminio%3A9000&region=r", "http://minio:9000/photos/a/o"),
        ("s3://photos/a?endpoint=https://store.example&style=host", "https://photos.store.example/a/o"),
        ("s3://photos/a?region=eu-central-1&style=path", "https://s3.eu-central-1.amazonaws.com/photos/a/o"),
    ])
    func `a URL names the bucket, the prefix and the store`(url: String, object: String) throws {
        let configuration = try ColdTier.Configuration(url: url)
        let key = (configuration.prefix.isEmpty ? "" : configuration.prefix + "/") + "o"
        #expect(configuration.bucket == "photos")
        let target = try configuration.endpoint.url(bucket: configuration.bucket, key: Array(key.utf8))
        #expect(target.absoluteString == object)
    }

    @Test(arguments: [
        "", "photos", "https://photos/", "s3://", "s3:///a?region=r", "s3://photos", "s3://photos?region=",
        "s3://photos?region=EU", "s3://photos?endpoint=minio:9000", "s3://photos?endpoint=ftp://minio",
        "s3://photos?region=r&region=s", "s3://photos?regoin=r", "s3://photos?region=r&style=label",
        "s3://photos?region=r#a", "s3://photos/../a?region=r", "s3://photos/a%00?region=r",
        "s3://photos/%FF?region=r", "s3://s3cret:s3cret@photos?region=r",
        "s3://photos?endpoint=http://127.0.0.1&style=host",
    ])
    func `a URL that names no store is refused with advice`(url: String) throws {
        let error = try #require(throws: CacheError.self) { try ColdTier.Configuration(url: url) }
        #expect(error.code == .invalidURL)
        #expect(error.message.contains("; "))
        #expect(!error.message.contains("s3cret"))
    }

    @Test func `a key has a name and a secret that can be signed`() throws {
        let url = "s3://photos?region=eu-central-1"
        _ = try ColdTier.Configuration(url: url, accessKey: "a", secretKey: "s", sessionToken: "t")
        for (access, secret, token) in [
            ("a", nil, nil), (nil, "s", nil), (nil, nil, "t"), ("a", "", nil), ("", "s", nil), ("a\n", "s", nil),
            ("a", "s\0", nil), ("a", "s", "t\r"),
        ] as [(String?, String?, String?)] {
            #expect(throws: CacheError.self) {
                try ColdTier.Configuration(url: url, accessKey: access, secretKey: secret, sessionToken: token)
            }
        }
    }

    @Test(arguments: ["a/b", "é", " ", String(repeating: "a", count: 65)])
    func `a revision is a short word`(revision: String) throws {
        let url = "s3://photos?region=eu-central-1"
        #expect(throws: CacheError.self) { try ColdTier.Configuration(url: url, revision: revision) }
        #expect(try ColdTier.Configuration(url: url, revision: "v1.2_a-3").revision == "v1.2_a-3")
    }

    @Test func `a description of a configuration hides the secrets`() throws {
        let configuration = try ColdTier.Configuration(
            url: "s3://photos?region=r",
            accessKey: "a",
            secretKey: "s3cret",
            sessionToken: "t0ken"
        )
        for text in ["\(configuration)", String(reflecting: configuration), "\(ColdTier(configuration))"] {
            #expect(!text.contains("s3cret") && !text.contains("t0ken"))
        }
    }
}

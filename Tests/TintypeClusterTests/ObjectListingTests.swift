// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import TintypeCluster

struct ObjectListingTests {
    private func listing(_ content: String) -> ObjectListing? {
        let start =
            #"<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">"#
        return ObjectListing(Data("\(start)\(content)</ListBucketResult>".utf8))
    }

    @Test("the last page has keys and no token")
    func lastPage() throws {
        let listing = try #require(
            self.listing(
                """
                <Name>b</Name><Prefix>cache/</Prefix><IsTruncated>false</IsTruncated>
                <Contents><Key>cache/a</Key><Size>3</Size><Owner><ID>7</ID></Owner></Contents>
                <Contents><Key>cache/b</Key></Contents>
                """
            )
        )
        #expect(listing.keys == ["cache/a", "cache/b"])
        #expect(listing.nextPage == nil)
    }

    @Test("a page before the last has the token of the next one")
    func truncated() throws {
        let listing = try #require(
            self.listing(
                "<IsTruncated>true</IsTruncated><Contents><Key>a</Key></Contents><NextContinuationToken>x&amp;y=</NextContinuationToken>"
            )
        )
        #expect(listing.nextPage == "x&y=")
    }

    @Test("a page without objects has no keys", arguments: ["", "<Contents/>", "<IsTruncated>false</IsTruncated>"])
    func empty(content: String) throws {
        #expect(try #require(self.listing(content)).keys.isEmpty)
    }

    @Test(
        "entities in keys are characters",
        arguments: [
            ("a&amp;b", "a&b"), ("&lt;&gt;&quot;&apos;", "<>\"'"), ("&#38;&#x26;&#xE9;", "&&é"), ("é😀", "é😀"),
            ("&amp;lt;", "&lt;"), ("&unknown;", "&unknown;"), ("a&", "a&"), ("&#xD800;", "&#xD800;"),
        ]
    )
    func entities(text: String, key: String) throws {
        #expect(try #require(self.listing("<Contents><Key>\(text)</Key></Contents>")).keys == [key])
    }

    @Test(
        "anything but a whole list is refused",
        arguments: [
            "", "text", "<html></html>", "<Error><Code>NoSuchBucket</Code></Error>",
            "<ListBucketResult><Contents><Key>a</Key></Contents>", "<ListBucketResult><Contents><Key>a</Key",
            "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        ]
    )
    func refused(text: String) {
        #expect(ObjectListing(Data(text.utf8)) == nil)
    }
}

// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestTraits

@testable import TintypeCoding

@Suite(.computing) struct XMPPacketTests {
    /// A packet with properties as attributes and as elements, like packets that editors write.
    static let packet = """
        <?xpacket begin="\u{FEFF}" id="W5M0MpCehiHzreSzNTczkc9d"?>
        <x:xmpmeta xmlns:x="adobe:ns:meta/"><!-- GPS: a comment -->
         <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
          <rdf:Description rdf:about="" xmlns:exif="http://ns.adobe.com/exif/1.0/" xmlns:gps="urn:x"
            tiff:Orientation="6" exif:GPSLatitude="33,51.4225S" drone-dji:GpsLongitude='151.2' xmp:Rating="5"
            xmpNote:HasExtendedXMP="0123" dc:note="a &gt; b, &quot;GPS&quot;">
           <dc:subject><rdf:Bag><rdf:li>GPS receivers</rdf:li></rdf:Bag></dc:subject>
           <exif:GPSLongitude>151,12.0E</exif:GPSLongitude>
           <exif:GPSVersionID/>
           <xmp:Thumbnails><rdf:Alt><rdf:li><xmpGImg:image>AAAA</xmpGImg:image></rdf:li></rdf:Alt></xmp:Thumbnails>
           <x:place><exif:GPSAltitude><a><b/>12</a></exif:GPSAltitude>kept</x:place>
          </rdf:Description>
         </rdf:RDF>
        </x:xmpmeta>
        <?xpacket end="w"?>
        """

    private static func carried(_ text: String, keepsPosition: Bool = false) -> String? {
        XMPPacket.carriedOver(Data(text.utf8), keepsPosition: keepsPosition).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func `coordinates leave a packet, and words stay`() throws {
        let text = try #require(Self.carried(Self.packet))
        for gone in ["33,51", "151", "GPSVersionID", "Orientation", "AAAA", "Thumbnails", "<b/>", "Altitude", "0123"] {
            #expect(!text.contains(gone), "\(gone)")
        }
        for kept in [
            "xmp:Rating=\"5\"", "dc:note=\"a &gt; b, &quot;GPS&quot;\"", "<rdf:li>GPS receivers</rdf:li>",
            "<x:place>kept</x:place>", "<!-- GPS: a comment -->", "<?xpacket end=\"w\"?>", "xmlns:gps=\"urn:x\"",
        ] {
            #expect(text.contains(kept), "\(kept)")
        }
        // The result can be read again, and loses nothing more.
        #expect(Self.carried(text) == text)
    }

    @Test func `a packet keeps its coordinates where asked for`() throws {
        let text = try #require(Self.carried(Self.packet, keepsPosition: true))
        #expect(text.contains("33,51.4225S") && text.contains("151,12.0E") && !text.contains("Orientation"))
    }

    @Test(arguments: [
        "<a", "<a b", "<a b=", "<a b=c>", "<a b=\"c>", "<a></a", "<a><b></a>", "</a>", "<>", "<a/", "<!-- ", "<?x",
        "<![CDATA[ ]] >", "<!DOCTYPE a [<!ENTITY b \"GPS\">]><a/>", "<a b=\"1\"c=\"2\"/>", "<a\0/>", "<\0a\0/\0>\0",
    ]) func `a packet that cannot be read is left out`(text: String) {
        #expect(Self.carried(text) == nil)
    }

    @Test(arguments: ["", "text", "<a/>", "<a  />", "<a\n b = 'c' ></a>", "<a><![CDATA[<GPS>]]></a>"])
    func `a packet without anything to lose stays as it is`(text: String) {
        #expect(Self.carried(text) == text)
    }

    @Test func `a prefix that begins like a declaration is none`() {
        let packet = "<a xmlns:b=\"c\" xmlnsb:GPSLatitude=\"1\"><xmlnsb:GPSLongitude>2</xmlnsb:GPSLongitude></a>"
        #expect(Self.carried(packet) == "<a xmlns:b=\"c\"></a>")
    }

    @Test func `zeros behind a packet are no part of it`() {
        #expect(Self.carried("<a/>\0\0") == "<a/>")
        #expect(Self.carried("\0\0") == "")
    }

    @Test func `every prefix of a packet is read without harm`() {
        let bytes = Array(Self.packet.utf8)
        for count in 0..<bytes.count { _ = XMPPacket.carriedOver(Data(bytes[..<count]), keepsPosition: false) }
    }
}

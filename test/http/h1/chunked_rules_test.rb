# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "heddle/http"
require_relative "rule_table"

# What RFC 9112, 7.1 requires of a decoder of chunked bodies. Each body is fed whole, byte by byte, and cut once
# everywhere.
class ChunkedRulesTest < Minitest::Test
  include Heddle::HTTP
  extend RuleTable

  # => [status of the rejection, or data, whether it is complete, what is left over]
  def decode(pieces, **limits)
    decoder = H1::ChunkedDecoder.new(Limits.new(**limits))
    output = "".b
    rest = pieces.reduce("".b) do |left, piece|
      bytes = left + piece
      used = decoder.decode(bytes, 0, output)
      return [decoder.rejection.status, decoder.rejection.reason] if decoder.rejection

      bytes.byteslice(used, bytes.bytesize)
    end
    [output, decoder.done?, rest]
  end

  def check_rule(bytes, expected, limits = {})
    bytes = bytes.b
    whole = decode([bytes], **limits)
    ways = [bytes.each_char.to_a]
    ways += (1...bytes.bytesize).map { |cut| [bytes.byteslice(0, cut), bytes.byteslice(cut, bytes.bytesize)] }
    ways.each { |way| assert_equal whole, decode(way, **limits), "cut differently: #{bytes.inspect}" }
    return assert_equal(expected, whole) unless expected.is_a?(RuleTable::Refused)

    assert_equal expected.status, whole[0], bytes.inspect
    assert_match expected.reason, whole[1] if expected.reason
  end

  def self.whole(data, rest = "") = [data, true, rest]
  def self.part(data) = [data, false, ""]

  rules(
    "9112 7.1" => [
      ["chunks are joined", "5\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\n\r\n", whole("hello world")],
      ["no chunk but the last", "0\r\n\r\n", whole("")],
      ["what follows is left alone", "1\r\na\r\n0\r\n\r\nGET / HTTP/1.1\r\n", whole("a", "GET / HTTP/1.1\r\n")],
      ["digits in either case", "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", whole("0123456789" * 2)],
      ["leading zeros", "0000000000000001\r\na\r\n0000\r\n\r\n", whole("a")],
      ["seventeen digits", "00000000000000001\r\na\r\n", refused(400, /size/)],
      ["data that looks like framing", "7\r\n0\r\n\r\n\r\n\r\n0\r\n\r\n", whole("0\r\n\r\n\r\n")],
      ["data of any octets", "4\r\n\0\xFF\r\n\r\n0\r\n\r\n", whole("\0\xFF\r\n".b)],
      ["without the last chunk it is not complete", "1\r\na\r\n", part("a")],
      ["without the last line it is not complete", "1\r\na\r\n0\r\n", part("a")],
      ["a chunk that has not come whole", "5\r\nhel", part("hel")],
      ["the largest size there is", "FFFFFFFFFFFFFFFF\r\n", refused(413)],
      ["sizes whose sum wraps around", "1\r\na\r\nFFFFFFFFFFFFFFFF\r\n", refused(413)],
      ["no size", "\r\n", refused(400, /size/)],
      ["no digit", "g\r\n", refused(400, /size/)],
      ["a minus", "-1\r\n", refused(400, /size/)],
      ["a plus", "+1\r\n", refused(400, /size/)],
      ["a prefix", "0x1\r\na\r\n", refused(400, /size/)],
      ["an underscore", "1_0\r\n", refused(400, /size/)],
      ["a decimal point", "1.0\r\n", refused(400, /size/)],
      ["a space before the size", " 1\r\na\r\n", refused(400, /size/)],
      ["a space after the size", "1 \r\na\r\n", refused(400, /size/)],
      ["a size line that ends with LF", "1\na\r\n", refused(400, /size/)],
      ["a size line that ends with CR", "1\ra\r\n", refused(400, /size/)],
      ["a size line that ends with CR CR LF", "1\r\r\na\r\n", refused(400, /size/)],
      ["NUL in the size", "1\0\r\n", refused(400, /size/)],
      ["an octet above 127 in the size", "\xFF1\r\n", refused(400, /size/)],
      ["data that is longer than its size", "1\r\nab\r\n0\r\n\r\n", refused(400, /does not end/)],
      ["data that is shorter than its size", "3\r\na\r\n0\r\n\r\n", refused(400, /does not end/)],
      ["data that ends with LF", "1\r\na\n0\r\n\r\n", refused(400, /does not end/)],
      ["data that ends with CR", "1\r\na\r0\r\n\r\n", refused(400, /does not end/)],
      ["data that no line end follows", "1\r\na0\r\n\r\n", refused(400, /does not end/)],
      ["a line end of the last chunk with LF", "0\n\r\n", refused(400, /size/)],
      ["an end with LF", "0\r\n\n", refused(400, /LF alone/)],
      ["an end with CR and something else", "0\r\n\rx", refused(400, /CR is not/)]
    ],
    "9112 7.1.1" => [
      ["extensions that are not known are ignored", "1;a=b\r\nx\r\n0\r\n\r\n", whole("x")],
      ["without a value", "1;a\r\nx\r\n0;b\r\n\r\n", whole("x")],
      ["several", "1;a=b;c=d\r\nx\r\n0\r\n\r\n", whole("x")],
      ["a quoted value", "1;a=\"b;c\"\r\nx\r\n0\r\n\r\n", whole("x")],
      ["white space around the semicolon", "1 \t; a = b\r\nx\r\n0\r\n\r\n", whole("x")],
      ["octets above 127", "1;a=\"\xE4\"\r\nx\r\n0\r\n\r\n", whole("x")],
      ["no semicolon", "1 a\r\nx\r\n", refused(400, /size/)],
      ["a bare LF", "1;a\nb\r\nx\r\n", refused(400, /size/)],
      ["a bare CR", "1;a\rb\r\nx\r\n", refused(400, /size/)],
      ["a NUL", "1;a\0\r\nx\r\n", refused(400, /size/)],
      ["as long as is taken", "1;#{"a" * 9}\r\nx\r\n0\r\n\r\n", whole("x"), { chunk_extension_limit: 10 }],
      ["longer", "1;#{"a" * 10}\r\nx\r\n0\r\n\r\n", refused(400, /extensions/), { chunk_extension_limit: 10 }],
      ["longer together", "1;aaaaa\r\nx\r\n1;bbbbb\r\n", refused(400, /extensions/), { chunk_extension_limit: 10 }],
      ["white space counts", "1#{" " * 10};a\r\nx\r\n", refused(400, /extensions/), { chunk_extension_limit: 10 }]
    ],
    "9112 7.1.2" => [
      ["trailers are read and forgotten", "0\r\nA: b\r\nC:\r\n\r\nx", whole("", "x")],
      ["one that must not be a trailer changes nothing", "0\r\nContent-Length: 5\r\nHost: b\r\n\r\n", whole("")],
      ["octets above 127 in a value", "0\r\nA: \xE4\t\r\n\r\n", whole("")],
      ["no colon", "0\r\nA\r\n\r\n", refused(400, /no colon/)],
      ["no name", "0\r\n: b\r\n\r\n", refused(400, /no name/)],
      ["white space before the colon", "0\r\nA : b\r\n\r\n", refused(400, /before the colon/)],
      ["a name that is no token", "0\r\nA(: b\r\n\r\n", refused(400, /not allowed/)],
      ["a folded line", "0\r\nA: b\r\n c\r\n\r\n", refused(400, /obs-fold/)],
      ["white space before the first", "0\r\n A: b\r\n\r\n", refused(400, /obs-fold/)],
      ["a bare LF", "0\r\nA: b\nC: d\r\n\r\n", refused(400, /LF alone/)],
      ["a bare CR", "0\r\nA: b\rC: d\r\n\r\n", refused(400, /CR is not/)],
      ["a NUL", "0\r\nA: \0\r\n\r\n", refused(400, /control/)],
      ["more than are taken", "0\r\n#{"a: b\r\n" * 3}\r\n", refused(431, /more than 2/), { header_count: 2 }],
      ["as many as are taken", "0\r\n#{"a: b\r\n" * 2}\r\n", whole(""), { header_count: 2 }],
      ["longer than is taken", "0\r\na: #{"b" * 1_018}\r\n\r\n", refused(431, /1024 bytes/), { header_limit: 1_024 }],
      ["as long as is taken", "0\r\na: #{"b" * 1_017}\r\n\r\n", whole(""), { header_limit: 1_024 }]
    ],
    "9112 7.1.3" => [
      ["as large as is taken", "5\r\nhello\r\n0\r\n\r\n", whole("hello"), { body_limit: 5 }],
      ["larger in one chunk", "6\r\n", refused(413), { body_limit: 5 }],
      ["larger together", "3\r\nabc\r\n3\r\n", refused(413), { body_limit: 5 }],
      ["framing as heavy as is taken", "1\r\na\r\n1\r\nb\r\n0\r\n\r\n", whole("ab"), { chunk_overhead_limit: 8 }],
      ["heavier framing", "1\r\na\r\n1\r\nb\r\n", refused(400, /too much chunk framing/), { chunk_overhead_limit: 7 }]
    ]
  )
end

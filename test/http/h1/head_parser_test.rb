# frozen_string_literal: true

require "test_helper"
require_relative "parsing_helpers"

class HeadParserTest < Minitest::Test
  include ParsingHelpers

  def test_a_request_line_and_header_lines_are_read
    head = assert_accepted("POST /a/b?c=d?e HTTP/1.1\r\nHost: example.org:81\r\nX-One:1\r\nx-two: \t 2 \t\r\n\r\nrest")
    assert_equal ["POST", "/a/b?c=d?e", "/a/b", "c=d?e", 1],
                 [head.method, head.target, head.path, head.query, head.minor]
    assert_equal ["host", "example.org:81", "x-one", "1", "x-two", "2"], head.fields
    assert_equal ["example.org:81", "example.org", "81"], [head.authority, head.host, head.port]
    assert_equal 73, head.ending
    refute_predicate head, :body?
    assert_predicate head, :keep_alive?
  end

  def test_a_head_is_read_from_the_middle_of_a_buffer
    bytes = request.b
    head = parser.parse("xxxx".b + bytes + bytes, 4)

    assert_equal 4 + bytes.bytesize, head.ending
  end

  def test_an_incomplete_head_asks_for_more
    ["", "\r", "\r\n", "G", "GET", "GET ", "GET / HTTP/1.1", "GET / HTTP/1.1\r", "GET / HTTP/1.1\r\n",
     "GET / HTTP/1.1\r\nHost: a\r\n\r"].each { |bytes| assert_nil parse(bytes), bytes.inspect }
  end

  def test_one_empty_line_before_a_request_is_skipped
    assert_equal "/", assert_accepted("\r\n#{request}").path
    assert_rejected 400, "\r\n\r\n#{request}"
  end

  REFUSED_LINES = {
    "GET /" => /form `method/, "GET" => /form `method/, "" => /form `method/, "GET  / HTTP/1.1" => /form `method/,
    "GET / HTTP/1.1 " => /form `method/, "GET / HTTP/1.1 x" => /form `method/, "GET /a b HTTP/1.1" => /form `method/,
    "GET\t/\tHTTP/1.1" => nil, " GET / HTTP/1.1" => nil, "G(T / HTTP/1.1" => /token/, "GÉT / HTTP/1.1" => nil,
    "GET /a#b HTTP/1.1" => /fragment/, "GET http://\xC3\xA4/ HTTP/1.1" => /host/, "GET /a\0b HTTP/1.1" => /control/,
    "GET /a\x01 HTTP/1.1" => /control/, "GET /\x7F HTTP/1.1" => /control/, "GET /a\tb HTTP/1.1" => nil,
    "GET / http/1.1" => /version/, "GET / HTTP/1" => /version/, "GET / HTTP/1.10" => /version/,
    "GET / HTTP/01.1" => /version/, "GET / HTTP/1.1a" => /version/, "GET / HTTPS/1.1" => /version/,
    "GET / XHTTP/1.1" => /version/, "GET / HTTP/1,1" => /version/, "GET / HTTP /1.1" => nil,
    "GET foo HTTP/1.1" => /neither a path nor/, "GET ?a HTTP/1.1" => /neither/, "GET * HTTP/1.1" => /OPTIONS/,
    "GET example.org:80 HTTP/1.1" => /neither/, "GET ftp://a/ HTTP/1.1" => /neither/,
    "GET http:///x HTTP/1.1" => /host/, "GET http://u@a/ HTTP/1.1" => /host/, "GET http://a:b/ HTTP/1.1" => /host/,
    "CONNECT / HTTP/1.1" => /host:port/, "CONNECT a HTTP/1.1" => /host:port/, "CONNECT a: HTTP/1.1" => /host:port/,
    "CONNECT http://a/ HTTP/1.1" => /host:port/, "\x16\x03\x01\x02\x00\x01\x00" => nil
  }.freeze

  def test_proxy_header_on_an_address_without_the_parameter_is_named
    ["PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", "\r\n\r\n\0\r\nQUIT\n!\x11\0\f"].each do |header|
      assert_rejected 400, header + request, /begins with a PROXY header: set proxy_protocol=on/
    end
    assert_accepted request(line: "PROXY / HTTP/1.1")
  end

  def test_malformed_request_lines_are_bad_requests
    REFUSED_LINES.each { |line, word| assert_rejected 400, request(line:), word }
  end

  def test_an_invalid_request_is_rejected_before_its_end
    ["\x16\x03\x01", "GET / HTTP/1.1\n", "(", " ", "GET /\0", "\r\n\r\n", "GET / HTTP/1.1\r\n x", "GET /\rx",
     "GET / HTTP/1.1\r\nHost: a\n", "GET / HTTP/1.1\r\nA: \0", "GET / HTTP/1.1\r\nA: b\r\n\tc"].each do |bytes|
      assert_rejected 400, bytes
    end
    assert_rejected 505, "GET / HTTP/2.0\r\n"
  end

  def test_another_major_version_is_not_supported
    %w[HTTP/0.9 HTTP/2.0 HTTP/3.0 HTTP/9.1].each { |version| assert_rejected 505, request(line: "GET / #{version}") }
    assert_rejected 505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
  end

  def test_a_later_minor_version_counts_as_one_one
    assert_equal 1, assert_accepted(request(line: "GET / HTTP/1.2")).minor
    assert_equal 0, assert_accepted(request(line: "GET / HTTP/1.0")).minor
  end

  def test_any_token_is_a_method_and_its_case_is_kept
    ["GET", "get", "PROPFIND", "M-SEARCH", "!#$%&'*+-.^_`|~09"].each do |method|
      assert_equal method, assert_accepted(request(line: "#{method} / HTTP/1.1")).method
    end
  end

  def test_the_four_forms_of_a_target
    { "GET /" => ["/", "", "a"], "GET //x/../y" => ["//x/../y", "", "a"], "GET /?" => ["/", "", "a"],
      "GET /a%20b?c=%00&d" => ["/a%20b", "c=%00&d", "a"], "GET /{\"|^`\\<>}" => ["/{\"|^`\\<>}", "", "a"],
      "GET http://b:8/c?d" => ["/c", "d", "b:8"], "GET HTTP://b" => ["/", "", "b"], "GET http://b?d" => ["/", "d", "b"],
      "GET https://[::1]:8/" => ["/", "", "[::1]:8"], "OPTIONS *" => ["*", "", "a"],
      "OPTIONS http://b" => ["*", "", "b"],
      "OPTIONS /x" => ["/x", "", "a"], "CONNECT b:443" => ["b:443", "", "b:443"],
      "CONNECT [::1]:443" => ["[::1]:443", "", "[::1]:443"] }.each do |line, expected|
      head = assert_accepted(request(line: "#{line} HTTP/1.1"))
      assert_equal expected, [head.path, head.query, head.authority], line
    end
  end

  def test_a_target_with_a_host_still_needs_the_host_header
    assert_rejected 400, request(line: "GET http://b/ HTTP/1.1", host: "")
  end

  REFUSED_FIELDS = {
    "A : b" => /before the colon/, "A\t: b" => /before the colon/, ": b" => /no name/, "A" => /no colon/,
    "A b: c" => /not allowed/, "A(b): c" => /not allowed/, "Ä: b" => /not allowed/, "A\x00b: c" => /control/,
    " A: b" => /white space/, "A: b\r\n c" => /white space/, "A: b\r\n\tc" => /white space/, "A: b\nB: c" => /LF alone/,
    "A: b\rB: c" => /CR is not/, "A: b\r\r" => nil, "A: b\0c" => /control/, "A: \x01" => /control/,
    "A: \x7F" => /control/, "A: b\x0Bc" => /control/, "A: b\x0Cc" => /control/, "A: \e[0m" => /control/,
    "A@: b" => /not allowed/, "\"A\": b" => /not allowed/, "A;: b" => /not allowed/, "A[]: b" => /not allowed/
  }.freeze

  def test_malformed_header_lines_are_bad_requests
    REFUSED_FIELDS.each do |line, word|
      assert_rejected 400, request(line), word
      assert_rejected 400, request(line, "C: d"), word
      assert_rejected 400, "GET / HTTP/1.1\r\n#{line}\r\nHost: a\r\n\r\n", word
    end
  end

  def test_a_bare_line_feed_is_a_bad_request_wherever_it_stands
    bytes = request("A: b", "C: d")
    bytes.scan("\r\n").size.times do |index|
      count = -1
      broken = bytes.gsub("\r\n") { (count += 1) == index ? "\n" : "\r\n" }

      assert_rejected 400, broken
    end
  end

  def test_obs_text_and_tabs_in_values_are_kept_byte_for_byte
    head = assert_accepted(request("A: \xC3\xA4\xFF\t\x80", "B:", "C: \t "))
    assert_equal ["a", "\xC3\xA4\xFF\t\x80".b, "b", "", "c", ""], head.fields.drop(2)
    assert_equal Encoding::BINARY, head.fields[3].encoding
  end

  def test_names_with_an_underscore_are_dropped_unless_kept_by_configuration
    bytes = request("X_Forwarded_For: 1", "Content_Length: 5", "A: b")

    assert_equal %w[host a a b], assert_accepted(bytes).fields
    kept = assert_accepted(bytes, underscore_headers: true)
    assert_equal %w[host a x_forwarded_for 1 content_length 5 a b], kept.fields
    assert_nil kept.content_length
  end

  def test_a_missing_second_or_malformed_host_is_a_bad_request
    assert_rejected 400, request(host: ""), /no Host/
    assert_rejected 400, request("Host: a"), /two Host/
    assert_rejected 400, request("host: b"), /two Host/
    ["", "a b", "a/b", "a, b", "u@a", "a:b", "a:1:2", "a:-1", ":80", "[::1", "::1", "[::1]x", "[1:2]", "[::1::2]",
     "[::g]", "[1:2:3:4:5:6:7:8:9]", "[::1%25lo]", "[::256.1.1.1]", "[::1.2.3]", "a\\b", "a%zz", "a?b", "a#b",
     "\xC3\xA4", "http://a", "<a>", "a\"b"].each { |host| assert_rejected 400, request(host: "Host: #{host}\r\n"), /Host header is not/ }
  end

  def test_hosts_of_every_kind_are_accepted
    { "a" => ["a", ""], "A.b-c_d~.e:80" => ["A.b-c_d~.e", "80"], "127.0.0.1:1" => ["127.0.0.1", "1"], "a:" => ["a", ""],
      "[::1]" => ["[::1]", ""], "[::1]:8080" => ["[::1]", "8080"],
      "[fe80:0:0:0:1:2:3:4]" => ["[fe80:0:0:0:1:2:3:4]", ""],
      "[::ffff:1.2.3.4]:5" => ["[::ffff:1.2.3.4]", "5"], "[1::]" => ["[1::]", ""], "[v1.a:b]" => ["[v1.a:b]", ""],
      "x%41y" => ["x%41y", ""] }.each do |host, expected|
      head = assert_accepted(request(host: "Host: #{host}\r\n"))
      assert_equal expected, [head.host, head.port], host
    end
  end

  def test_http_one_zero_needs_no_host
    head = assert_accepted("GET / HTTP/1.0\r\n\r\n")
    assert_nil head.host
    assert_rejected 400, "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"
    assert_rejected 400, "GET / HTTP/1.0\r\nHost: a b\r\n\r\n"
  end
end

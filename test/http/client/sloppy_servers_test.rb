# frozen_string_literal: true

require "test_helper"
require "json"
require "zlib"
require_relative "support/client_case"

# Servers that send what no standard allows, and requests with unusual options.
class ClientSloppyServersTest < ClientCase
  # @return [String] the target that a Location leads to
  def target_after(location, from = "/")
    server = serve do |socket, request|
      next socket.write(hello(request.target)) unless request.target == from

      socket.write("HTTP/1.1 302 F\r\nLocation: #{location}\r\nContent-Length: 0\r\n\r\n".b)
    end
    Client.new(server.url, proxy: nil).get(from).body
  end

  def test_a_location_is_followed_as_browsers_do_whatever_is_in_its_path
    assert_equal "/a%20b", target_after("/a b")
    assert_equal "/%C3%A4?x=%C3%B6", target_after("/\u00e4?x=\u00f6")
    assert_equal "/a%5B1%5D?filter%5Bb%5D=%7C", target_after("/a[1]?filter[b]=|")
    assert_equal "/100%25", target_after("/100%")
    assert_equal "/%C3%A4", target_after("/%C3%A4")
  end

  def test_a_redirect_is_relative_to_whatever_path_was_asked_for
    assert_equal "/ok", target_after("/ok", "/a|b[1]")
    assert_equal "/a/ok", target_after("ok", "/a/b?filter[c]={d}")
  end

  def test_a_location_with_a_port_that_there_cannot_be_is_an_error_of_the_redirect
    [0, 65_536, 99_999].each do |port|
      assert_raises(Client::RedirectError) { target_after("http://127.0.0.1:#{port}/") }
      assert_match(/port is #{port}/, assert_raises(ArgumentError) { Client.new("http://127.0.0.1:#{port}") }.message)
    end
  end

  def test_a_protocol_that_is_switched_unasked_is_an_error
    server = serve do |socket, _|
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n")
    end
    error = assert_raises(Client::ProtocolError) { Client.new(server.url, proxy: nil).get("/") }

    assert_match(/switched protocols without being asked to/, error.message)
  end

  # @param headers [Hash] of the request
  def answer_to(headers = {}, status: 200, coding: "gzip", body: "hello", **options)
    server = serve do |socket, request|
      @asked = request["Accept-Encoding"]
      socket.write("HTTP/1.1 #{status} X\r\nContent-Encoding: #{coding}\r\n" \
                   "Content-Length: #{body.bytesize}\r\n\r\n".b + body)
    end
    Client.new(server.url, proxy: nil, **options).get("/", headers:)
  end

  def test_a_part_of_a_compressed_body_comes_as_it_is
    part = Zlib.gzip("hello").byteslice(5..)

    assert_equal part, answer_to({ "Range" => "bytes=5-" }, status: 206, body: part).body
    assert_equal "identity", @asked
  end

  def test_a_server_that_ignores_range_and_its_encoding_gives_no_compressed_bytes
    assert_raises(Client::DecodingError) { answer_to({ "Range" => "bytes=5-" }, coding: "br", body: "compressed") }
  end

  def test_a_range_is_one_of_the_plain_body_unless_the_caller_wants_it_otherwise
    answer_to({ "range" => "bytes=5-", "Accept-Encoding" => "gzip" }, body: Zlib.gzip("hello"))

    assert_equal "gzip", @asked
  end

  def test_a_caller_that_asks_for_another_encoding_gets_it
    assert_equal "compressed", answer_to({ "Accept-Encoding" => "br" }, coding: "br", body: "compressed").body
    assert_equal "hello", answer_to({ "Accept-Encoding" => "br, gzip" }, body: Zlib.gzip("hello")).body
    assert_raises(Client::DecodingError) { answer_to(coding: "br") }
    assert_raises(Client::DecodingError) { answer_to({ "Accept-Encoding" => nil }, coding: "br") }
  end

  # A gzip member of empty blocks (RFC 1951, 3.2.4), and its end.
  EMPTY_BLOCKS = "\x1f\x8b\b\0\0\0\0\0\0\x03#{"\0\0\0\xff\xff" * 40_000}\x03\0#{"\0" * 8}".b.freeze
  private_constant :EMPTY_BLOCKS

  def test_a_compressed_body_without_content_has_an_end
    assert_raises(Client::BodyTooLargeError) { answer_to(body: EMPTY_BLOCKS, body_limit: 50_000) }
    assert_equal "", answer_to(body: EMPTY_BLOCKS).body
  end

  def test_a_compressed_body_without_content_has_an_end_also_where_it_is_streamed
    client = Client.new(serve_gzip(EMPTY_BLOCKS).url, proxy: nil, body_limit: 50_000)

    assert_raises(Client::BodyTooLargeError) { client.stream(:get, "/", &:body) }
  end

  def serve_gzip(body)
    serve do |socket, _|
      socket.write("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: #{body.bytesize}\r\n\r\n", body)
    end
  end

  def test_a_body_may_have_many_members_but_not_many_tiny_ones
    text = Random.new(1).bytes(200)

    assert_equal text * 3_000, answer_to(body: Zlib.gzip(text) * 3_000).body.b
    assert_equal "", answer_to(body: Zlib.gzip("") * 1_000).body
    assert_raises(Client::DecodingError) { answer_to(body: Zlib.gzip("") * 1_001) }
  end

  def test_other_fibers_run_while_members_are_decoded
    decoder = Client.const_get(:Decoder).new(1_000, whole: true)
    turns = 0
    Heddle.run do
      decoding = Heddle.async { decoder.feed(Zlib.gzip("a") * 640) { nil } }
      (turns += 1) && sleep(0) until decoding.ended?
    end

    assert_operator turns, :>=, 9
  end

  def typed(charset, body = "{}x")
    head = "HTTP/1.1 200 OK\r\nContent-Type: a/b; charset=#{charset}\r\nContent-Length: #{body.bytesize}\r\n\r\n"
    Client.new(serve { |socket, _| socket.write(head + body) }.url, proxy: nil).get("/")
  end

  def test_a_charset_that_is_none_leaves_the_body_as_it_is
    %w[internal nonsense].each { |charset| assert_equal Encoding::BINARY, typed(charset).body.encoding }
  end

  def test_json_in_an_impossible_charset_is_rejected
    %w[utf-7 utf-16].each { |charset| assert_raises(JSON::ParserError) { typed(charset).json } }
  end

  def test_a_path_without_a_slash_is_named_as_what_it_is
    message = assert_raises(ArgumentError) { Client.new("http://a.example").get("orders") }.message

    assert_match(%r{"orders" .* or a path that begins with /}, message)
  end
end

# frozen_string_literal: true

# test: sanitize

require "test_helper"
require_relative "support/client_case"
require_relative "support/h2_scripted_server"

# A server of HTTP/2 that breaks off, stalls, breaks the protocol or floods: no truncated response counts as complete,
# and each of these faults costs at most the connection.
class ClientHTTP2HostileTest < ClientCase
  BODY = "twelve bytes"
  # Frames to the request on stream 1, as bytes.
  ANSWER = [
    [1, 4, "\x00\x07:status\x03200\x00\x0econtent-length\x0212"], # HEADERS, the end of the headers
    [0, 0, BODY.byteslice(0, 6)], [0, 1, BODY.byteslice(6, 6)]
  ].map do |type, flags, payload|
    [payload.bytesize >> 16, payload.bytesize & 0xFFFF, type, flags, 1].pack("CnCCN") + payload.b
  end.join.freeze

  def serve_h2(**, &script)
    server = H2ScriptedServer.new(**, &script)
    (@servers ||= []) << server
    server
  end

  def client(server, **) = Client.new(server.url, http2: :prior_knowledge, proxy: nil, **)

  # The frames are sent in answer to the first request, on stream 1.
  def assert_rejected(*frames, repeat: 1, error: Client::ProtocolError, says: nil)
    server = serve_h2 do |peer, _|
      peer.read_request
      repeat.times { frames.each { |frame| peer.send_frame(frame) } }
      peer.read_to_end
    end
    raised = assert_raises(error, frames.inspect) { client(server, timeout: { total: LIMIT }).get("/") }
    assert_match says, raised.message if says
  end

  def test_cut_at_every_byte
    cuts = (0..ANSWER.bytesize).to_a
    server = serve_h2 do |peer, number|
      peer.read_request
      peer.send_bytes(ANSWER.byteslice(0, cuts.fetch(number - 1)))
      peer.read_to_end if cuts.fetch(number - 1) == ANSWER.bytesize
    end
    http = client(server)
    in_loop do
      cuts[..-2].each do |cut|
        error = assert_raises(Client::Error, "cut at #{cut}") { http.get("/") }
        head = ANSWER.index("\x00\x00\x06\x00".b)
        assert_instance_of cut < head ? Client::ConnectionLostError : Client::IncompleteBodyError, error,
                           "cut at #{cut}"
      end
      assert_equal BODY, http.get("/").body
    end
    assert_equal cuts.size, server.connections
  end

  def test_a_post_that_is_cut_at_every_byte_is_sent_once
    posts = 0
    server = serve_h2 do |peer, number|
      peer.read_request
      posts += 1
      peer.send_bytes(ANSWER.byteslice(0, number - 1))
    end
    http = client(server)
    in_loop do
      ANSWER.bytesize.times do |cut|
        assert_raises(Client::OutcomeUnknownError, Client::IncompleteBodyError, "cut at #{cut}") { http.post("/", body: "x") }
      end
    end
    assert_equal ANSWER.bytesize, posts
  end

  def test_stall_at_every_byte
    server = serve_h2 do |peer, number|
      peer.read_request
      peer.send_bytes(ANSWER.byteslice(0, number - 1))
      peer.read_to_end
    end
    head = ANSWER.index("\x00\x00\x06\x00".b)
    in_loop do
      ANSWER.bytesize.times do |stall|
        first = stall < head
        assert_raises(first ? Client::FirstByteTimeoutError : Client::ReadTimeoutError, "stalls at #{stall}") do
          client(server).get("/", timeout: { first_byte: first ? 0.02 : LIMIT, read: first ? LIMIT : 0.02 })
        end
        Client::OriginRegistry.close_idle # the next answer comes on another connection
      end
    end
  end

  def test_answers_that_break_the_protocol
    assert_rejected "DATA es 1 \"early\""
    assert_rejected "HEADERS es+eh 1 content-type=x"
    assert_rejected "HEADERS es+eh 1 :status=20x"
    assert_rejected "HEADERS es+eh 1 :status=101"
    assert_rejected "HEADERS es+eh 1 :status=103"
    assert_rejected "HEADERS es+eh 1 :status=200 :path=/"
    assert_rejected "HEADERS es+eh 1 x=1 :status=200"
    assert_rejected "HEADERS es+eh 1 :status=200 connection=close", says: /a field such as Connection/
    assert_rejected "HEADERS es+eh 1 :status=200 Upper=case"
    assert_rejected "HEADERS eh 1 :status=200", "HEADERS eh 1 :status=200", says: /pseudo-header field/
    assert_rejected "HEADERS eh 1 :status=200", "HEADERS eh 1 x=1", says: /trailers don't end/
    assert_rejected "HEADERS es+eh 1 :status=200 content-length=5"
    assert_rejected "HEADERS eh 1 :status=200 content-length=5", "DATA es 1 \"four\""
    assert_rejected "HEADERS eh 1 :status=200 content-length=3", "DATA es 1 \"four\""
    assert_rejected "HEADERS eh 1 :status=200 content-length=3 content-length=4", "DATA es 1 \"four\""
    assert_rejected "HEADERS eh 1 :status=103", repeat: 40, says: /interim/
  end

  def test_frames_that_no_server_may_send
    assert_rejected "PUSH_PROMISE eh 1 #2 get"
    assert_rejected "HEADERS es+eh 3 :status=200"
    assert_rejected "HEADERS es+eh 2 :status=200"
    assert_rejected "SETTINGS - 0 2:1"
    assert_rejected "CONTINUATION eh 1 :status=200"
    assert_rejected "WINDOW_UPDATE - 0 #0"
    assert_rejected "WINDOW_UPDATE - 0 #2147483647", repeat: 2
    assert_rejected "HEADERS es+eh 1 ff"
  end

  # What the first request does not read, the second one receives.
  def test_more_of_a_body_than_the_window_is_rejected
    server = serve_h2 do |peer, _|
      unread = peer.read_request.stream
      peer.send_frame("HEADERS eh #{unread} :status=200")
      other = peer.read_request.stream
      33.times { peer.send_frame("DATA - #{unread} 61*16384") } # the window is 512 KiB
      peer.answer(other)
      peer.read_to_end
    end
    http = client(server)

    in_loop do
      http.stream(:get, "/") do |response|
        assert_equal "hello", http.get("/").body
        assert_raises(Client::ProtocolError) { response.body }
      end
    end
  end

  def test_floods
    assert_rejected "HEADERS - 1 :status=200", *Array.new(50) { |n| "CONTINUATION - 1 x-#{n}=1" }, says: /CONTINUATION/
    assert_rejected "HEADERS - 1 :status=200", *Array.new(9) { "CONTINUATION - 1 61*16384" }
    assert_rejected "PING - 0 \"12345678\"", repeat: 5_000
    assert_rejected "SETTINGS - 0 3:100", repeat: 5_000
    assert_rejected "SETTINGS - 0 #{"3:100 " * 40}"
    assert_rejected "HEADERS eh 1 :status=200", *Array.new(2_000) { "DATA - 1" }
    assert_rejected "WINDOW_UPDATE - 0 #1", repeat: 2_000
  end

  # One byte of the block is a field of the table (the attack called "HTTP/2 bomb").
  def test_a_block_of_references_is_rejected
    assert_rejected "HEADERS es+eh 1 88#{"bf" * 4_000}", error: Client::ProtocolError
    assert_rejected "HEADERS es+eh 1 88#{"84" * 1_000}"
  end

  def test_many_fields_cost_their_request_alone
    server = serve_h2 do |peer, _|
      stream = peer.read_request.stream
      peer.send_frame("HEADERS es+eh #{stream} :status=200 #{Array.new(300) { |n| "x-#{n}=1" }.join(" ")}")
      peer.read_until("RST_STREAM")
      peer.answer(peer.read_request.stream)
      peer.read_to_end
    end
    http = client(server)

    assert_match(/larger than its limit/, assert_raises(Client::ProtocolError) { http.get("/") }.message)
    assert_equal "hello", http.get("/").body
    assert_equal 1, server.connections
  end

  def test_a_server_that_resets_all_streams_is_left_after_a_while
    skip "100 resets a second are allowed, and AddressSanitizer makes it hardly faster" if ENV["HEDDLE_SANITIZED"]
    server = serve_h2 { |peer, _| peer.reset_all(8) }
    http = client(server)
    in_loop { Heddle.map(1..1_500) { assert_raises(Client::Error) { http.get("/") } } }

    assert_operator server.connections, :>, 1
  end

  def test_a_server_of_http1_is_an_error_that_says_so
    server = serve { |socket, _| socket.write(hello) }

    assert_raises(Client::Error) { client(server).get("/") }
  end
end

# frozen_string_literal: true

require "test_helper"
require "zlib"
require_relative "support/client_case"

# A body that is returned is complete, wherever the connection is cut or stalls.
class WholeAnswersTest < ClientCase
  BODY = "twelve bytes"
  GZIP = Zlib.gzip(BODY)
  ANSWERS = {
    sized: "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\n#{BODY}",
    chunked: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\ntwelve\r\n6\r\n bytes\r\n0\r\n\r\n",
    trailers: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nC\r\n#{BODY}\r\n0\r\nDigest: x\r\n\r\n",
    interim: "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n#{BODY}",
    gzip: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: #{GZIP.bytesize}\r\n\r\n".b + GZIP,
    gzip_until_close: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n".b + GZIP
  }.freeze

  ANSWERS.each do |name, answer|
    define_method(:"test_cut_at_every_byte_#{name}") do
      server = serve { |socket, request| socket.write(answer.byteslice(0, request["cut"].to_i)) && socket.close }
      client = Client.new(server.url, proxy: nil)

      in_loop do
        Heddle.map(0...answer.bytesize, limit: 20) do |cut|
          error = assert_raises(Client::Error, "cut at #{cut}") { client.get("/", headers: { cut: cut }) }
          assert_kind_of Client::ConnectionLostError, error if cut.zero?
        end
        assert_equal BODY, client.get("/", headers: { cut: answer.bytesize }).body
      end
    end

    define_method(:"test_a_post_cut_at_every_byte_is_sent_once_#{name}") do
      server = serve { |socket, request| socket.write(answer.byteslice(0, request["cut"].to_i)) && socket.close }
      client = Client.new(server.url, proxy: nil)

      in_loop do
        Heddle.map(0...answer.bytesize, limit: 20) do |cut|
          assert_raises(Client::OutcomeUnknownError, Client::IncompleteBodyError, Client::DecodingError) do
            client.post("/#{cut}", body: "x", headers: { cut: cut })
          end
        end
      end

      assert_equal (0...answer.bytesize).map { |cut| "/#{cut}" }.sort, server.received.map(&:target).sort
    end

    define_method(:"test_stall_at_every_byte_#{name}") do
      server = serve do |socket, request|
        socket.write(answer.byteslice(0, request["stall"].to_i))
        socket.read # until the client closes
      end
      client = Client.new(server.url, proxy: nil, max_connections: 1_000)

      in_loop do
        Heddle.map(0...answer.bytesize) do |stall|
          # Only the limit that is expected can pass, however late a busy machine sends the bytes.
          first = [0, answer.index("HTTP/1.1 200")].include?(stall)
          assert_raises(first ? Client::FirstByteTimeoutError : Client::ReadTimeoutError, "stalls at #{stall}") do
            client.get("/", headers: { stall: stall },
                            timeout: { first_byte: first ? 0.2 : LIMIT, read: first ? LIMIT : 0.2 })
          end
        end
      end
    end
  end

  def test_a_stalling_answer_ends_with_the_total_limit
    server = serve { |socket, _| socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal") && socket.read }
    client = Client.new(server.url, proxy: nil, timeout: { total: 0.2 })

    assert_raises(Client::TotalTimeoutError) { client.get("/") }
    assert_raises(Client::TotalTimeoutError) { in_loop { client.get("/") } }
  end

  def test_a_stream_without_a_pause_leaves_turns_to_other_fibers
    sent = Thread::Queue.new
    server = serve do |socket, _|
      sent << socket.write("HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n", "x" * 500_000)
    end
    turns = 0
    pieces = Heddle.run do
      Heddle.async(background: true) { loop { sleep(0) && turns += 1 } }
      Client.new(server.url, proxy: nil).stream(:get, "/") do |response|
        sent.pop
        turns = 0
        response.each.count
      end
    end

    assert_operator turns, :>=, pieces
  end

  def test_a_stream_without_a_pause_ends_with_the_total_limit
    server = serve_bytes("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
    client = Client.new(server.url, proxy: nil, timeout: { total: 60 })
    ended = Heddle::MonotonicClock.now + 120

    assert_raises(Client::TotalTimeoutError) do
      client.stream(:get, "/") do |response|
        Heddle::MonotonicClock.stub(:now, ended) { response.each { |piece| flunk "got #{piece} after the limit" } }
      end
    end
  end

  def test_a_streamed_body_that_is_cut_raises_after_its_pieces
    server = serve_bytes(ANSWERS[:sized].byteslice(0..-4))
    pieces = []

    assert_raises(Client::IncompleteBodyError) do
      Client.new(server.url, proxy: nil).stream(:get, "/") { |response| response.each { |piece| pieces << piece } }
    end
    assert_equal "twelve by", pieces.join
  end

  def test_a_saved_body_that_is_cut_leaves_no_file
    server = serve_bytes(ANSWERS[:chunked].byteslice(0..-4))
    Dir.mktmpdir do |folder|
      path = File.join(folder, "body")
      assert_raises(Client::IncompleteBodyError) do
        Client.new(server.url, proxy: nil).stream(:get, "/") { |response| response.save(path) }
      end
      assert_empty Dir.children(folder)
    end
  end

  def test_bodies_that_are_saved_to_one_place_at_a_time_do_not_mix
    gate = Thread::Queue.new
    server = serve do |socket, request|
      next socket.write(hello("whole")) unless request.target == "/cut"

      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut off")
      gate.pop
      socket.close
    end
    client = Client.new(server.url, proxy: nil)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "body")
      cut = Thread.new do
        assert_raises(Client::IncompleteBodyError) { client.stream(:get, "/cut") { |response| response.save(path) } }
      end
      until_true { Dir.children(folder).any? }

      assert_equal(5, client.stream(:get, "/whole") { |response| response.save(path) })
      gate.push(true)
      cut.value
      assert_equal ["whole", %w[body]], [File.read(path), Dir.children(folder)]
    end
  end

  def test_smuggled_answers_are_refused
    {
      "two lengths" => "Content-Length: 5\r\nContent-Length: 6",
      "a length and a coding" => "Content-Length: 5\r\nTransfer-Encoding: chunked",
      "another coding" => "Transfer-Encoding: gzip, chunked, chunked",
      "no number" => "Content-Length: 5x"
    }.each do |what, lines|
      server = serve_bytes("HTTP/1.1 200 OK\r\n#{lines}\r\n\r\nhello")
      assert_raises(Client::ProtocolError, what) { Client.new(server.url, proxy: nil).get("/") }
    end
  end

  def test_a_flood_of_interim_answers_is_refused
    server = serve_bytes("HTTP/1.1 102 Processing\r\n\r\n" * 100)

    assert_raises(Client::ProtocolError) { Client.new(server.url, proxy: nil).get("/") }
  end

  def test_bytes_after_a_response_end_the_connection
    server = serve { |socket, _| socket.write("#{hello}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil") }
    client = Client.new(server.url, proxy: nil)

    assert_equal(%w[hello hello], Array.new(2) { client.get("/").body })
    assert_equal 2, server.connections
  end

  def test_an_answer_without_content_has_an_empty_body
    server = serve { |socket, _| socket.write("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n") }

    assert_equal "", Client.new(server.url, proxy: nil).get("/").body
  end
end

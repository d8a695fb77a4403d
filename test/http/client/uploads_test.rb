# frozen_string_literal: true

require "test_helper"
require "tempfile"
require_relative "support/client_case"

# Requests with a body: either one complete request is sent, or the connection ends.
class UploadsTest < ClientCase
  class Short < StringIO
    def size = 200
  end

  def echo = serve { |socket, request| socket.write(hello("#{request.target} #{request.body}")) }

  # After a request that was left half-sent, the next one gets its own answer.
  def assert_next_is_answered(client)
    yield
  ensure
    assert_equal "/next ", client.get("/next").body
  end

  def test_a_short_io_raises_and_the_next_request_gets_its_own_answer
    client = Client.new(echo.url, proxy: nil)
    assert_next_is_answered(client) do
      error = assert_raises(IOError) { client.post("/short", body: Short.new("x" * 150)) }
      assert_match(/ended 50 bytes short of its size/, error.message)
    end
  end

  def test_a_body_that_raises_passes_its_error_and_ends_the_connection
    client = Client.new(echo.url, proxy: nil)
    [RuntimeError, Errno::EIO, IOError, EOFError, ClosedQueueError].each do |error|
      assert_next_is_answered(client) do
        assert_raises(error) { client.post("/each", body: Enumerator.new { |body| (body << "abc") && raise(error) }) }
      end
    end
  end

  def test_a_cancelled_upload_ends_the_connection
    client = Client.new(echo.url, proxy: nil)
    in_loop do
      written = Thread::Queue.new
      body = Enumerator.new { |pieces| (pieces << "abc") && written.push(true) && Thread::Queue.new.pop }
      assert_next_is_answered(client) do
        Heddle.scope do |scope|
          scope.async { client.post("/cancelled", body: body) }
          written.pop
          scope.cancel
        end
      end
    end
  end

  def test_an_upload_that_the_server_does_not_read_ends_the_connection
    server = serve do |socket, request|
      socket.write(hello("#{request.target} "))
      Thread.stop if request.target == "/first"
    end
    client = Client.new(server.url, proxy: nil)
    client.get("/first")
    assert_next_is_answered(client) do
      assert_raises(Client::WriteTimeoutError) { client.post("/", body: "x" * 30_000_000, timeout: { write: 0.1 }) }
    end
  end

  # The first connection waits for the only place, while the file grows.
  def test_a_file_that_grows_is_sent_as_large_as_it_was
    server = echo
    client = Client.new(server.url, proxy: nil, max_connections: 1)
    Tempfile.create do |file|
      file.write("a" * 10)
      file.flush
      grow = -> { File.write(file.path, "#{"a" * 10}GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n") }
      client.stream(:get, "/holds") do |response|
        upload = Thread.new { client.post("/grows", body: File.open(file.path)).body }
        until_true { Client.statistics.fetch(server.url)[:waiting] == 1 }
        grow.call
        response.body
        @upload = upload
      end

      assert_equal "/grows #{"a" * 10}", @upload.value
      assert_equal "/next ", client.get("/next").body
    end
    assert_equal %w[/holds /grows /next], server.received.map(&:target)
  end

  def test_pathname_is_not_accepted_as_a_body
    require "pathname"
    error = assert_raises(ArgumentError) { Client.new.post("http://127.0.0.1:1/", body: Pathname(__FILE__)) }

    assert_match(/\Abody: is a Pathname, but must be a String, an IO/, error.message)
  end

  def test_a_redirected_io_is_sent_again_from_where_it_stood
    server = serve do |socket, request|
      redirect = "HTTP/1.1 #{request.target[1..]} Go\r\nLocation: /to\r\nContent-Length: 0\r\n\r\n"
      socket.write(request.target == "/to" ? hello("got #{request.body}") : redirect)
    end
    client = Client.new(server.url, proxy: nil)
    [307, 308].each do |status|
      io = StringIO.new("skipped whole").tap { |one| one.pos = 8 }

      assert_equal "got whole", client.post("/#{status}", body: io).body
    end
    assert_raises(Client::RedirectError) { client.post("/307", body: %w[a b].each) }
  end

  # The server reads the body only after the client has taken its interim answers.
  def test_interim_answers_during_an_upload_do_not_cut_it_off
    size = 30_000_000
    server = serve(wrap: lambda { |socket|
      socket.gets("\r\n\r\n")
      socket.write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n")
      until_true { bytes_received_from(server).positive? }
      socket.write(hello(socket.read(size).bytesize.to_s))
      socket
    })
    [-> { "x" * size }, -> { StringIO.new("x" * size) }].each do |body|
      client = Client.new(server.url, proxy: nil, timeout: { first_byte: LIMIT })

      assert_equal size.to_s, client.post("/", body: body.call).body
      Client::OriginRegistry.close_idle
    end
  end

  def bytes_received_from(server)
    ObjectSpace.each_object(Heddle::Net::OutboundConnection).reject(&:closed?)
               .select { |one| one.remote_port == server.port }.sum(&:bytes_received)
  end
end

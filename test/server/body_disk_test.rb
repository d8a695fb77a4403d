# frozen_string_literal: true

# test: each mode

require "test_helper"
require "support/h2_client"
require_relative "server_helpers"

# The disk space that request bodies may use, and how much of it clients can occupy.
class BodyDiskTest < Minitest::Test
  include ServerHelpers

  LIMIT = 4_000_000 # bytes
  LARGE = 3_000_000 # bytes: more than half of it
  LARGE_BUFFER = 262_144 # bytes
  # Bytes: more than a body of unknown length has in memory (256 KiB).
  UPLOAD = "x" * 600_000

  # Uploads with any frames of HTTP/2, as far as the server's windows allow.
  class Http2Upload
    FRAME = "\0" * 16_384

    def initialize(socket)
      @client = H2Client.new(socket)
      @client.send_preface
      @windows = Hash.new { |windows, _stream| windows[:initial] }
      @windows[:initial] = @windows[0] = 65_535
      @statuses = {}
      read_until { @initial_came }
    end

    def close = @client.close

    def announce(stream, length: nil)
      @windows[stream] = @windows[:initial]
      @client.send_frame("HEADERS eh #{stream} :method=POST :scheme=http :authority=a :path=/ " \
                         "#{"content-length=#{length}" if length}")
    end

    # Sends at least that many bytes, unless the response comes before.
    def send_bytes(stream, size)
      (size.to_f / FRAME.bytesize).ceil.times do
        read_until { @statuses[stream] || [@windows[0], @windows[stream]].min >= FRAME.bytesize }
        return if @statuses[stream]

        @client.send_bytes([0, FRAME.bytesize, 0, 0, stream].pack("CnCCN") + FRAME)
        @windows[0] -= FRAME.bytesize
        @windows[stream] -= FRAME.bytesize
      end
    end

    def finish(stream)
      @client.send_frame("DATA es #{stream}") unless @statuses[stream]
      status(stream)
    end

    def status(stream)
      read_until { @statuses[stream] }
      @statuses[stream]
    end

    # @return [Integer] how many bytes the server would take on this stream, without those of the connection's window
    def window(stream)
      @answered = false
      @client.send_frame("PING - 0 0000000000000000")
      read_until { @answered }
      @windows[stream]
    end

    private

    def read_until
      take(@client.read_frame || raise("the connection has ended")) until yield
    end

    def take(frame)
      case frame.type
      when "SETTINGS" then take_settings(frame)
      when "PING" then @answered = true
      when "WINDOW_UPDATE" then @windows[frame.stream] += frame.payload.unpack1("N")
      when "HEADERS" then @statuses[frame.stream] = frame.payload.getbyte(0)
      when "RST_STREAM", "GOAWAY" then @statuses[frame.stream] || raise("#{frame.type} #{frame.error}")
      end
    end

    def take_settings(frame)
      return if frame.flags == 1

      frame.payload.scan(/(..)(....)/mn) { |id, value| @windows[:initial] = value.unpack1("N") if id == "\0\x04" }
      @initial_came = true
    end
  end

  OK_OVER_HTTP2 = 0x88 # :status 200 in HPACK's static table

  def answer = ->(env) { [200, {}, [env["rack.input"].read.bytesize.to_s]] }

  def connect_from(address) = TCPSocket.new("127.0.0.1", port, address)

  def post(length) = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: #{length}\r\n\r\n"

  def post_chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

  def upload(socket, length: UPLOAD.bytesize)
    socket.write(post(length), UPLOAD)
    status_of(socket)
  end

  def upload_chunked(socket)
    socket.write(post_chunked, UPLOAD.bytesize.to_s(16), "\r\n", UPLOAD, "\r\n0\r\n\r\n")
    status_of(socket)
  rescue Errno::EPIPE, Errno::ECONNRESET # the response came before the end
    status_of(socket)
  end

  def status_of(socket) = read_answer(socket).to_s[%r{\AHTTP/1.1 (\d+)}, 1].to_i

  def disk_used = server.engines.sum(&:body_disk_used)

  # A stream's own window of 64 KiB makes 0.8 MB a second of an upload whose round trip takes 80 ms.
  def test_uploads_into_files_may_use_the_window_of_their_connection_unless_there_are_many
    most = 64
    serving(answer) do
      upload = Http2Upload.new(connect)
      streams = Array.new(most + 1) { |i| (2 * i) + 1 }
      windows = streams.map do |stream|
        upload.announce(stream)
        upload.send_bytes(stream, 2 * LARGE_BUFFER)
        upload.window(stream)
      end

      assert_operator windows.first(most).min, :>, 500_000
      assert_operator windows.last, :<=, 65_536
      assert_equal OK_OVER_HTTP2, upload.finish(streams.first)
    ensure
      upload&.close
    end
  end

  def test_bodies_that_are_only_announced_hold_no_disk
    serving(answer, body_disk_limit: LIMIT) do
      silent = Array.new(5) { connect.tap { |socket| socket.write(post(LIMIT)) } }
      wait_until { server.engines.sum(&:spooled) == 5 }

      assert_equal 200, upload(connect)
      silent.each(&:close)
    end
  end

  def test_http2_bodies_that_are_only_announced_hold_no_disk
    serving(answer, body_disk_limit: LIMIT) do
      client = Http2Upload.new(connect)
      streams = [1, 3, 5]
      streams.each do |stream|
        client.announce(stream, length: LIMIT)
        client.send_bytes(stream, 300_000) # its body has a file now
      end
      client.announce(7, length: 0)
      client.finish(7)

      assert_equal 200, upload(connect)
      client.close
    end
  end

  # Serves while 127.0.0.1 has a body on the disk that lacks its last byte.
  def serving_a_large_body(length, trusted_proxies: [])
    serving(answer, body_disk_limit: LIMIT, max_connections: 100, trusted_proxies:) do
      first = connect
      first.write(post(length), "x" * (length - 1))
      wait_until { disk_used > length - LARGE_BUFFER }
      yield first
    ensure
      first.close
    end
  end

  def test_one_address_leaves_half_of_the_limit_to_others
    serving_a_large_body(LIMIT / 2) do |first|
      assert_equal 503, upload(connect)
      assert_equal 503, upload_chunked(connect)
      assert_equal 200, upload(connect_from("127.0.0.2"))
      assert_equal 200, upload_chunked(connect_from("127.0.0.2"))
      first.write("x")

      assert_equal 200, status_of(first)
      wait_until { disk_used.zero? }
      assert_equal 200, upload(connect)
    end
  end

  def test_one_address_leaves_half_of_the_limit_to_others_over_http2
    serving_a_large_body(LIMIT / 2) do
      [connect, connect_from("127.0.0.2")].zip([false, true]) do |socket, has_room|
        client = Http2Upload.new(socket)
        client.announce(1)
        client.send_bytes(1, UPLOAD.bytesize)

        assert_equal has_room, client.finish(1) == OK_OVER_HTTP2
        client.close
      end
    end
  end

  def test_the_next_address_leaves_half_of_the_rest_to_others
    serving_a_large_body(LIMIT / 2) do
      second = connect_from("127.0.0.2")
      second.write(post(UPLOAD.bytesize + 1), UPLOAD)
      wait_until { disk_used > (LIMIT / 2) + UPLOAD.bytesize - LARGE_BUFFER }

      assert_equal 503, upload(connect_from("127.0.0.2"))
      assert_equal 200, upload(connect_from("127.0.0.3"))
      second.close
    end
  end

  # With 256 descriptors the server has 64 files for bodies.
  def test_one_address_leaves_half_of_the_files_to_others
    descriptors, most = Process.getrlimit(:NOFILE)
    serving(answer, body_buffer: 0, max_connections: 1_000, trusted_proxies: []) do
      Process.setrlimit(:NOFILE, 256, most) # the server has raised it before
      sockets = Array.new(32) { connect.tap { |socket| socket.write(post(2), "x") } }
      wait_until { server.engines.sum(&:spooled) == 32 }

      assert_equal 503, upload(connect)
      assert_equal 200, upload(connect_from("127.0.0.2"))
      sockets.first.write("x")

      assert_equal 200, status_of(sockets.first)
      wait_until { upload(connect) == 200 } # the response comes before its file is closed
    ensure
      sockets&.each(&:close)
      Process.setrlimit(:NOFILE, descriptors, most)
    end
  end

  def test_addresses_with_files_leave_a_quarter_of_the_files_to_others
    descriptors, most = Process.getrlimit(:NOFILE)
    serving(answer, body_buffer: 0, max_connections: 1_000, trusted_proxies: []) do
      Process.setrlimit(:NOFILE, 256, most) # the server has raised it before
      sockets = Array.new(48) do |index|
        connect_from("127.0.0.#{2 + (index % 2)}").tap { |socket| socket.write(post(2), "x") }
      end
      wait_until { server.engines.sum(&:spooled) == 48 }

      assert_equal([503, 503, 200], %w[127.0.0.2 127.0.0.3 127.0.0.4].map { |from| upload(connect_from(from)) })
      sockets << connect_from("127.0.0.4").tap { |socket| socket.write(post(2), "x") }
      wait_until { server.engines.sum(&:spooled) == 50 }

      assert_equal 200, upload(connect_from("127.0.0.4")), "an address with one file"
    ensure
      sockets&.each(&:close)
      Process.setrlimit(:NOFILE, descriptors, most)
    end
  end

  def test_one_body_may_have_the_whole_limit
    serving(answer, body_disk_limit: LIMIT, max_connections: 100, trusted_proxies: []) do
      socket = connect
      socket.write(post(LIMIT), "x" * LIMIT)

      assert_equal 200, status_of(socket)
    end
  end

  def test_trusted_proxies_may_fill_the_limit
    serving_a_large_body(LARGE, trusted_proxies: ["127.0.0.1"]) { assert_equal 200, upload(connect) }
  end

  def wait_until
    limit = now + PATIENCE
    sleep 0.001 until yield || now > limit
    flunk "not within #{PATIENCE} s" if now > limit
  end
end

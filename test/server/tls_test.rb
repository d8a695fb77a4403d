# frozen_string_literal: true

require "test_helper"
require "support/h2_client"
require "support/tls_records"
require_relative "tls_helpers"
require "digest"
require "open3"

class ServerTLSTest < Minitest::Test
  include TLSHelpers

  # Many records, and more than the buffers of two sockets hold.
  LARGE = ("0123456789abcdef" * 65_536 * 12).freeze

  def test_a_request_over_tls_has_the_https_scheme
    seen = nil
    app = lambda do |env|
      seen = env.slice("rack.url_scheme", "HTTPS", "REMOTE_ADDR", "SERVER_PORT")
      [200, {}, ["hello"]]
    end
    serving_tls(app) do
      assert_match(%r{\Ahttps://127.0.0.1:\d+\z}, server.urls.first)
      response = https { |http| http.get("/") }

      assert_equal %w[200 hello], [response.code, response.body]
      expected = { "rack.url_scheme" => "https", "HTTPS" => "on", "REMOTE_ADDR" => "127.0.0.1",
                   "SERVER_PORT" => port.to_s }

      assert_equal expected, seen
    end
  end

  def test_only_versions_1_2_and_1_3_are_served
    serving_tls(text) do
      [OpenSSL::SSL::TLS1_2_VERSION, OpenSSL::SSL::TLS1_3_VERSION].each do |version|
        client = connect_tls(min_version: version, max_version: version)
        client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")

        assert_includes read_answer(client), "hello"
        client.close
      end
      error = assert_raises(OpenSSL::SSL::SSLError) do
        connect_tls(min_version: OpenSSL::SSL::TLS1_1_VERSION, max_version: OpenSSL::SSL::TLS1_1_VERSION,
                    ciphers: "ALL:@SECLEVEL=0")
      end

      assert_match(/alert protocol version/, error.message)
    end
  end

  def test_renegotiation_is_refused
    need_program("openssl")
    serving_tls(text) do
      output, = Open3.capture2e("openssl", "s_client", "-connect", "127.0.0.1:#{port}", "-tls1_2", stdin_data: "R\n")

      assert_match(/^RENEGOTIATING\n.*no renegotiation/m, output)
    end
  end

  def test_a_client_that_keeps_changing_its_keys_is_cut_off
    need_program("openssl")
    serving_tls(text, head_timeout: 600) do
      command = ["openssl", "s_client", "-connect", "127.0.0.1:#{port}", "-tls1_3"]
      changes = Open3.popen2e(*command) do |input, output, _process|
        (0...1_000).find do
          input.write("k\n")
          !Timeout.timeout(PATIENCE) { output.each_line.find { |line| line.start_with?("KEYUPDATE") } }
        rescue Errno::EPIPE
          true # it has ended
        end
      end

      # It is cut off after 128 messages, two tickets among them, and notices that later.
      assert_operator changes.to_i, :>=, 120
    end
  end

  def test_records_of_one_byte_bring_whole_requests
    app = ->(env) { [200, {}, [env["rack.input"].read.bytesize.to_s]] }
    serving_tls(app) do
      records = TLSRecords.new(connect).connect
      records.write_bytes("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000\r\n\r\n#{"x" * 3_000}")

      assert_match(/\r\n\r\n3000\z/, read_answer(records.client))
      records.close
    end
  end

  def test_records_of_one_byte_bring_whole_requests_over_http2
    app = ->(env) { [200, {}, [env["rack.input"].read.bytesize.to_s]] }
    serving_tls(app) do
      records = TLSRecords.new(connect, alpn_protocols: ["h2"]).connect
      client = H2Client.new(records.client)
      def client.send_bytes(bytes) = (@bytes ||= +"".b) << bytes
      client.send_preface
      client.send_frame("HEADERS eh 1 post")
      client.send_frame("DATA es 1 78*3000")
      records.write_bytes(client.send_bytes(""))
      frame = client.read_frame
      frame = client.read_frame until frame.nil? || frame.type == "DATA"

      assert_equal "3000", frame&.payload
      records.close
    end
  end

  def test_the_minimum_version_can_be_raised
    serving_tls(text, "cert=#{@certificate}&key=#{@key}&min=1.3") do
      assert_raises(OpenSSL::SSL::SSLError) { connect_tls(max_version: OpenSSL::SSL::TLS1_2_VERSION) }
      connect_tls(min_version: OpenSSL::SSL::TLS1_3_VERSION).close
    end
  end

  def test_openssl_and_curl_are_served
    need_program("openssl")
    need_program("curl")
    serving_tls(text) do
      output, = Open3.capture2e("openssl", "s_client", "-connect", "127.0.0.1:#{port}", "-quiet", "-CAfile",
                                @certificate, stdin_data: "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

      assert_match(/200 OK.*hello/m, output)
      output, status = Open3.capture2e("curl", "-sS", "--cacert", @certificate, "https://localhost:#{port}/",
                                       "--resolve", "localhost:#{port}:127.0.0.1")

      assert_equal ["hello", true], [output, status.success?]
    end
  end

  def test_alpn_chooses_the_protocol
    serving_tls(text) do
      assert_equal("http/1.1", connect_tls(alpn_protocols: %w[http/1.1]).tap(&:close).alpn_protocol)
      client = connect_tls(alpn_protocols: %w[h2 http/1.1])

      assert_equal "h2", client.alpn_protocol
      client.close
      assert_raises(OpenSSL::SSL::SSLError) { connect_tls(alpn_protocols: %w[spdy/3]) }
    end
  end

  def test_large_bodies_pass_in_both_directions
    app = ->(env) { [200, { "content-type" => "text/plain" }, [env["rack.input"].read]] }
    serving_tls(app) do
      answer = https { |http| http.post("/", LARGE, "content-type" => "text/plain").body }

      assert_equal [LARGE.bytesize, true], [answer.bytesize, answer == LARGE]
    end
  end

  def test_a_body_of_many_pieces_reaches_a_slow_client
    pieces = Array.new(2_000) { |i| i.to_s * (i % 700) }
    body = Enumerator.new { |out| pieces.each { |piece| out << piece unless piece.empty? } }
    headers = { "content-type" => "text/plain", "content-length" => pieces.sum(&:size).to_s }
    serving_tls(->(_env) { [200, headers, body] }, lint: false) do
      socket = connect
      socket.setsockopt(:SOCKET, :RCVBUF, 65_536)
      client = connect_tls(socket:)
      client.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      client.gets("\r\n\r\n")
      received = +""
      while (part = client.read(1_000))
        received << part
      end

      assert_equal pieces.join, received
    end
  end

  def test_a_file_is_sent_without_sendfile
    path = File.join(@folder, "large")
    File.binwrite(path, LARGE)
    file = Struct.new(:to_path) do
      def each = yield(File.binread(to_path))
    end
    serving_tls(->(_env) { [200, { "content-type" => "text/plain" }, file.new(path)] }, lint: false) do
      answer = https { |http| http.get("/").body }

      assert_equal Digest::SHA256.hexdigest(LARGE), Digest::SHA256.hexdigest(answer)
    end
  end

  def test_requests_follow_on_one_connection_and_may_come_together
    serving_tls(->(env) { [200, { "content-type" => "text/plain" }, [env["PATH_INFO"]]] }) do
      client = connect_tls
      3.times do |i|
        client.write("GET /#{i} HTTP/1.1\r\nHost: a\r\n\r\n")

        assert_match(%r{/#{i}\z}, read_answer(client))
      end
      client.write(Array.new(50) { |i| "GET /p#{i} HTTP/1.1\r\nHost: a\r\n\r\n" }.join)
      answers = Array.new(50) { read_answer(client)[%r{/p\d+\z}] }

      assert_equal Array.new(50) { |i| "/p#{i}" }, answers
      client.close
    end
  end

  def test_a_request_whose_records_come_byte_by_byte_is_served
    serving_tls(->(env) { [200, { "content-type" => "text/plain" }, [env["rack.input"].read]] }) do
      ours, theirs = UNIXSocket.pair
      far = connect
      relay = Thread.new { forward_byte_by_byte(theirs, far) }
      back = Thread.new { IO.copy_stream(far, theirs) }
      client = connect_tls(socket: ours)
      client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")

      assert_match(/hello\z/, Timeout.timeout(PATIENCE) { client.read })
    ensure
      [relay, back].each { |thread| thread&.kill }
    end
  end

  def forward_byte_by_byte(from, to)
    to.setsockopt(:TCP, :NODELAY, true)
    while (bytes = from.readpartial(4_096))
      bytes.each_byte { |byte| to.write(byte.chr) }
    end
  rescue EOFError, SystemCallError
    nil
  end

  def test_a_plain_request_to_a_tls_port_gets_an_error_that_names_tls
    serving_tls(text) do
      answer = exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n")

      assert_match(%r{\AHTTP/1.1 400 .*this port expects TLS.*https://}m, answer)
      assert_match(/connection: close/, answer)
    end
  end

  def test_a_connection_with_an_invalid_handshake_is_closed
    serving_tls(text) do
      ["\x16\x03\x01\x00\x05hello".b, "\x00".b * 40, "hello".b].each do |bytes|
        answer = begin
          exchange(bytes)
        rescue Errno::ECONNRESET
          ""
        end

        assert_match(/\A(\x15\x03.{5})?\z/mn, answer.b) # an alert, or nothing
      end
      https { |http| assert_equal "hello", http.get("/").body }
      until_statistics { |now| now.slice(:handshakes, :failed_handshakes) == { handshakes: 1, failed_handshakes: 3 } }
    end
  end

  def test_clients_that_leave_early_do_not_disturb_others
    serving_tls(->(env) { [200, { "content-type" => "text/plain" }, [env["rack.input"].read]] }) do
      connect.close
      half = connect
      half.write("\x16\x03\x01\x02".b)
      half.close
      client = connect_tls
      client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nbeginning")
      client.io.close # without close_notify
      client = connect_tls
      client.write("GET / HTTP/1.1\r\nHo")
      client.close
      until_statistics { |now| now[:connections].zero? }

      https { |http| assert_equal "hi", http.post("/", "hi", "content-type" => "text/plain").body }
    end
  end

  def test_a_complete_response_has_close_notify_and_a_cut_one_has_none
    body = Enumerator.new do |out|
      out << "beginning"
      raise "half-way"
    end
    app = ->(env) { [200, { "content-type" => "text/plain" }, env["PATH_INFO"] == "/cut" ? body : ["whole"]] }
    serving_tls(app, lint: false) do
      client = connect_tls
      client.write("GET / HTTP/1.0\r\n\r\n")

      assert_match(/whole\z/, client.read)
      # HTTP/1.0 has no chunks, so only the missing close_notify shows that the content is incomplete.
      context = OpenSSL::SSL::SSLContext.new
      context.options &= ~OpenSSL::SSL::OP_IGNORE_UNEXPECTED_EOF
      cut = OpenSSL::SSL::SSLSocket.new(connect, context).tap(&:connect)
      cut.write("GET /cut HTTP/1.0\r\n\r\n")
      cut.gets("\r\n\r\n")
      seen = begin
        Timeout.timeout(PATIENCE) { loop { cut.sysread(100) } }
      rescue SystemCallError, OpenSSL::SSL::SSLError, EOFError => e
        e
      end

      refute_nil seen
    end
  end

  def test_a_hijacked_connection_is_an_ssl_socket_with_its_unread_input
    app = lambda do |env|
      socket = env["rack.hijack"].call
      Thread.new do
        line = socket.gets
        socket.write("#{socket.class}: #{line}")
        socket.close
      end
      [200, {}, []]
    end
    serving_tls(app, lint: false) do
      client = connect_tls
      client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\nbehind \xFFit\n".b)

      assert_equal "OpenSSL::SSL::SSLSocket: behind \xFFit\n".b, Timeout.timeout(PATIENCE) { client.read }
    end
  end

  def test_a_stop_ends_idle_connections_with_close_notify
    start(text, bind: ["tls://127.0.0.1:0?cert=#{@certificate}&key=#{@key}"])
    context = OpenSSL::SSL::SSLContext.new
    context.options &= ~OpenSSL::SSL::OP_IGNORE_UNEXPECTED_EOF
    client = OpenSSL::SSL::SSLSocket.new(connect, context).tap(&:connect)
    client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    read_answer(client)
    stopped = stop

    assert_equal [true, nil], [stopped, client.read(1)]
  end

  def test_connections_survive_the_collector
    serving_tls(->(env) { [200, { "content-type" => "text/plain" }, [env["rack.input"].read]] }) do
      clients = Array.new(5) { connect_tls }
      3.times do
        GC.start
        GC.compact if GC.respond_to?(:compact)
        clients.each do |client|
          client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")

          assert_match(/abc\z/, read_answer(client))
        end
      end
      clients.each(&:close)
    end
  end

  # Each object that is made collects all garbage: without Rack::Lint there are few. A handshake under it:
  # test/net/tls_test.rb.
  def test_a_request_survives_the_collector_at_every_step
    serving_tls(text, lint: false, access_log: false, head_timeout: 600, queue_timeout: 600) do
      client = connect_tls
      begin
        GC.start
        GC.stress = 1 # of young objects, such as a request makes: marking all objects takes a minute
        client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        answer = client.readpartial(1_000)
      ensure
        GC.stress = false
      end

      assert_includes answer, "200 OK"
      client.close
    end
  end

  def test_idle_connections_have_no_fiber
    serving_tls(text, idle_timeout: 600, head_timeout: 600) do # on a busy machine, many handshakes take long
      before = server.statistics[:fibers]
      clients = Array.new(100) { connect_tls(verify_mode: OpenSSL::SSL::VERIFY_NONE) }
      statistics = until_statistics { |now| now[:idle] == 100 }

      assert_operator statistics[:fibers], :<=, before + 4
      https { |http| assert_equal "hello", http.get("/").body }
    ensure
      clients&.each { |client| client.io.close }
    end
  end
end

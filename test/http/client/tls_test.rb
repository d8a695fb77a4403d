# frozen_string_literal: true

# test: smoke

require "test_helper"
require "tmpdir"
require "support/free_port"
require_relative "support/client_case"
require_relative "../../support/certificates"

# Which servers the client trusts, against `openssl s_server`.
class ClientTlsTest < ClientCase
  def setup
    @folder = Dir.mktmpdir
    @authority = TestCertificates.make("authority", authority: true)
    @ca, = TestCertificates.write(@folder, "ca", @authority)
    @pids = []
  end

  def teardown
    super
    @pids.each { |pid| Process.kill(:KILL, pid) && Process.wait(pid) }
    FileUtils.rm_rf(@folder)
  end

  # @return [Integer] its port
  def s_server(pair, *options)
    need_program "openssl"
    cert, key = TestCertificates.write(@folder, "server", pair)
    port = FreePort.find
    @pids << spawn("openssl", "s_server", "-accept", "127.0.0.1:#{port}", "-cert", cert, "-key", key, "-www", "-quiet",
                   *options, in: File::NULL, out: File::NULL, err: File::NULL)
    until_true { TCPSocket.open("127.0.0.1", port, &:close) || true rescue false }
    port
  end

  def client(**tls) = Client.new(proxy: nil, tls: { ca: @ca, **tls })

  def error_of(port, client = self.client)
    assert_raises(Client::TLSError) { client.get("https://localhost:#{port}/") }.message
  end

  def test_a_good_certificate_is_believed_in_a_thread_and_in_a_loop
    port = s_server(TestCertificates.make("localhost", "127.0.0.1", ca: @authority))

    assert_equal 200, client.get("https://localhost:#{port}/").status
    in_loop { assert_match(/TLSv1\.3/, client.get("https://127.0.0.1:#{port}/").body) }
  end

  def test_an_expired_certificate_is_refused
    port = s_server(TestCertificates.make("localhost", ca: @authority, life: -60))

    assert_match(/expired/, error_of(port))
    in_loop { assert_match(/expired/, error_of(port)) }
  end

  def test_a_certificate_for_another_host_is_refused
    assert_match(/hostname "localhost" does not match/,
                 error_of(s_server(TestCertificates.make("example.com", ca: @authority))))
  end

  def test_a_certificate_for_a_name_is_not_one_for_an_address
    port = s_server(TestCertificates.make("localhost", ca: @authority))

    assert_raises(Client::TLSError) { client.get("https://127.0.0.1:#{port}/") }
  end

  # RFC 9525: neither the subject nor a dNSName with an address counts.
  def test_a_certificate_without_the_right_kind_of_name_is_refused
    port = s_server(named("localhost", nil))

    assert_match(/hostname "localhost" does not match/, error_of(port))
    port = s_server(named("127.0.0.1", "DNS:127.0.0.1"))

    assert_raises(Client::TLSError) { client.get("https://127.0.0.1:#{port}/") }
  end

  def named(subject, alternative)
    key = OpenSSL::PKey::EC.generate("prime256v1")
    certificate = TestCertificates.make(subject, ca: @authority, key:).first
    certificate.extensions = certificate.extensions.reject { |one| one.oid == "subjectAltName" }
    if alternative
      certificate.add_extension(OpenSSL::X509::ExtensionFactory.new.create_extension("subjectAltName", alternative))
    end
    [certificate.sign(@authority.last, "SHA256"), key]
  end

  def test_an_unknown_issuer_is_refused
    other = TestCertificates.make("other authority", authority: true)

    assert_match(/unable to get local issuer|self[- ]signed/,
                 error_of(s_server(TestCertificates.make("localhost", ca: other))))
    assert_match(/self[- ]signed/, error_of(s_server(TestCertificates.make("localhost"))))
  end

  def test_the_system_does_not_know_our_authority
    port = s_server(TestCertificates.make("localhost", ca: @authority))

    assert_match(/verify failed/, error_of(port, Client.new(proxy: nil)))
  end

  def test_an_old_version_is_refused
    port = s_server(TestCertificates.make("localhost", ca: @authority), "-tls1_2")

    assert_equal 200, client.get("https://localhost:#{port}/").status
    assert_raises(Client::TLSError) { client(minimum: "1.3").get("https://localhost:#{port}/") }
  end

  def test_a_minimum_version_in_another_spelling_is_not_taken_for_an_older_one
    port = s_server(TestCertificates.make("localhost", ca: @authority), "-tls1_2")

    assert_raises(Client::TLSError) { client(minimum: 1.3).get("https://localhost:#{port}/") }
    ["TLSv1.3", :tls, "1.4"].each { |text| assert_raises(ArgumentError) { client(minimum: text) } }
  end

  def test_a_server_is_called_by_its_name_without_the_dot_at_its_end
    names = Thread::Queue.new
    pair = TestCertificates.make("localhost", ca: @authority)
    context = OpenSSL::SSL::SSLContext.new
    context.add_certificate(*pair)
    context.servername_cb = ->((_, name)) { names.push(name) && nil }
    server = serve(wrap: ->(socket) { OpenSSL::SSL::SSLSocket.new(socket, context).accept }) do |socket, _|
      socket.write(hello)
    end

    in_loop { assert_equal "hello", client.get("https://localhost.:#{server.port}/").body }
    assert_equal "localhost", names.pop(timeout: 0)
  end

  def test_a_server_that_asks_for_a_certificate_gets_the_clients_own
    port = s_server(TestCertificates.make("localhost", ca: @authority),
                    "-Verify", "1", "-verify_return_error", "-CAfile", @ca, "-tls1_2")
    cert, key = TestCertificates.write(@folder, "client", TestCertificates.make("client", ca: @authority))

    assert_equal 200, client(cert: cert, key: key).get("https://localhost:#{port}/").status
    error_of(port)
  end

  # s_server -www says "Reused" for a session that is resumed.
  def test_a_session_is_resumed
    ["-tls1_3", "-tls1_2"].each do |version|
      port = s_server(TestCertificates.make("localhost", ca: @authority), version)
      client = self.client

      refute_match(/^Reused, /, client.get("https://localhost:#{port}/").body)
      assert_match(/^Reused, /, client.get("https://localhost:#{port}/").body)
    end
  end

  def test_a_handshake_that_stands_still_has_a_limit
    listener = TCPServer.new("127.0.0.1", 0)
    url = "https://localhost:#{listener.local_address.ip_port}/"
    client = Client.new(proxy: nil, timeout: { tls: 0.1 })

    assert_raises(Client::TLSTimeoutError) { client.get(url) }
    in_loop { assert_raises(Client::TLSTimeoutError) { client.get(url) } }
  ensure
    listener.close
  end

  def test_a_server_without_tls_is_an_error
    server = serve(wrap: ->(socket) { socket.write(hello) && socket }) { nil }

    assert_raises(Client::TLSError) { client.get("https://localhost:#{server.port}/") }
  end

  # A server of our own, to cut where openssl would not.
  def tls_server(&)
    pair = TestCertificates.make("localhost", ca: @authority)
    context = OpenSSL::SSL::SSLContext.new
    context.add_certificate(*pair)
    serve(wrap: ->(socket) { OpenSSL::SSL::SSLSocket.new(socket, context).accept }, &)
  end

  # Without a length the end of the connection is the end of the body: over TLS somebody in between could cut it.
  def test_a_body_that_ends_with_the_connection_must_end_with_tls
    server = tls_server do |socket, request|
      socket.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it")
      request.target == "/cut" ? socket.io.close : socket.close
    end
    url = "https://localhost:#{server.port}"

    assert_raises(Client::IncompleteBodyError) { client.get("#{url}/cut") }
    server.close
  end

  # Otherwise a request of which the server has read a part would count as one that was not sent, and be repeated.
  def test_records_before_the_one_that_fails_count_as_sent
    closed = Thread::Queue.new
    server = tls_server do |socket, _|
      socket.io.close
      closed.push(true)
    end
    connection = Heddle::Net.connect("localhost:#{server.port}", tls: { ca: @ca })
    connection.write("GET / HTTP/1.1\r\n\r\n")
    closed.pop
    before = connection.bytes_sent

    assert_raises(Errno::EPIPE, Errno::ECONNRESET) { connection.write("x" * 200_000) }
    assert_includes 1...200_000, connection.bytes_sent - before
  ensure
    connection&.close
  end

  def test_large_bodies_both_ways_over_tls
    server = tls_server { |socket, request| socket.write(hello(request.body)) }
    data = Random.bytes(3 << 20)
    url = "https://localhost:#{server.port}"

    assert_equal data, client.post("#{url}/", body: data).body.b
    in_loop { assert_equal data, client.post("#{url}/", body: StringIO.new(data)).body.b }
  end
end

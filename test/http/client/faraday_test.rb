# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "zlib"
require_relative "support/client_case"
require_relative "../../support/certificates"
require "heddle/http/faraday"

class FaradayTest < ClientCase
  def connection(server, **) = Faraday.new(server.url, **) { |builder| builder.adapter :heddle }

  def test_a_length_that_middleware_has_set_is_the_bodys
    server = serve { |socket, request| socket.write(hello("#{request["content-length"]} #{request.body}")) }

    assert_equal "6 abcdef", connection(server).post("/", "abcdef", "Content-Length" => "3").body
  end

  def test_requests_with_headers_and_bodies
    server = serve { |socket, request| socket.write(hello("#{request.method} #{request["x-a"]} #{request.body}")) }
    faraday = connection(server)

    assert_equal "GET 1 ", faraday.get("/", nil, { "X-A" => "1" }).body
    assert_equal "POST  b", faraday.post("/", "b").body
    in_loop { assert_equal %w[GET GET], Heddle.map(1..2) { faraday.get("/").body.split.first } }
    assert_equal 200, faraday.get("/").status
  end

  def test_the_user_follows_redirects
    server = serve { |socket, _| socket.write("HTTP/1.1 302 F\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n") }

    assert_equal [302, "/x"], connection(server).get("/").then { |response| [response.status, response["location"]] }
  end

  def test_pieces_come_as_they_are_sent
    gate = Thread::Queue.new
    server = serve do |socket, _|
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none")
      gate.pop # the second half only once the first one has arrived
      socket.write("two")
    end
    pieces = []
    response = connection(server).get("/") do |request|
      request.options.on_data = lambda { |piece, _size, _env|
        pieces << piece
        gate.push(true)
      }
    end

    assert_equal [%w[one two], 200], [pieces, response.status]
  end

  def test_proxy_credentials_are_sent_from_url_or_options
    proxy = serve { |socket, request| socket.write(hello(request["proxy-authorization"].to_s)) }
    address = proxy.url.delete_prefix("http://")

    [{ uri: proxy.url, user: "me", password: "p:@ s" }, "http://me:p%3A%40%20s@#{address}"].each do |choice|
      text = Faraday.new("http://a.example", proxy: choice) { |builder| builder.adapter :heddle }.get("/").body
      assert_equal "Basic #{["me:p:@ s"].pack("m0")}", text
    end
  end

  # As faraday-gzip does.
  class Decompress < Faraday::Middleware
    def on_request(env) = env[:request_headers]["Accept-Encoding"] ||= "gzip,br"

    def on_complete(env)
      case env[:response_headers]["Content-Encoding"]
      when "gzip" then env[:body] = Zlib.gunzip(env[:body])
      when "br" then env[:body] = env[:body].swapcase
      end
    end
  end

  def test_middleware_that_decompresses_finds_what_its_headers_say
    server = serve do |socket, request|
      coding = request.target.delete_prefix("/")
      body = coding == "gzip" ? Zlib.gzip("hello") : "HELLO"
      socket.write(hello(body).b.sub("\r\n", "\r\nContent-Encoding: #{coding}\r\n"))
    end
    faraday = Faraday.new(server.url) do |builder|
      builder.use Decompress
      builder.adapter :heddle
    end

    assert_equal %w[hello hello], %w[/gzip /br].map { |path| faraday.get(path).body }
  end

  # Nothing is decompressed, and the size is what was asked for.
  def test_answers_without_a_body_keep_the_fields_that_describe_it
    server = serve do |socket, request|
      status = request.target == "/head" ? "200 OK" : "304 Not Modified"
      socket.write("HTTP/1.1 #{status}\r\nContent-Encoding: gzip\r\nContent-Length: 1234\r\n\r\n")
    end
    faraday = Faraday.new(server.url, headers: { "Accept-Encoding" => "gzip" }) { |builder| builder.adapter :heddle }

    assert_equal %w[gzip 1234], faraday.head("/head").headers.values_at("content-encoding", "content-length")
    assert_equal %w[gzip 1234], faraday.get("/get").headers.values_at("content-encoding", "content-length")
  end

  def test_a_key_may_be_of_any_type
    key = OpenSSL::PKey.generate_key("ED25519")
    adapter = Heddle::HTTP::FaradayAdapter.new

    assert_equal key.private_to_pem, adapter.send(:pem, [key])
  end

  # @param settings [Hash] of the context
  def tls_server(authority, **settings)
    context = OpenSSL::SSL::SSLContext.new
    context.add_certificate(*TestCertificates.make("localhost", ca: authority))
    settings.each { |name, value| context.public_send("#{name}=", value) }
    accept = lambda do |socket|
      OpenSSL::SSL::SSLSocket.new(socket, context).accept
    rescue OpenSSL::SSL::SSLError
      socket.tap(&:close)
    end
    serve(wrap: accept) { |socket, _| socket.write(hello(socket.peer_cert.subject.to_s)) }
  end

  def test_certificates_and_versions_are_those_that_faraday_names
    authority = TestCertificates.make("authority", authority: true)
    store = OpenSSL::X509::Store.new.add_cert(authority.first)
    cert, key = TestCertificates.make("me", ca: authority)
    Dir.mktmpdir do |folder|
      ca_file, = TestCertificates.write(folder, "ca", authority)
      server = tls_server(authority, verify_mode: 3, cert_store: store, max_version: :TLS1_2)
      get = lambda do |**more|
        ssl = { ca_file:, client_cert: cert, client_key: key, **more }
        Faraday.new("https://localhost:#{server.port}", ssl:) { |builder| builder.adapter :heddle }.get("/").body
      end

      assert_equal "/CN=me", get.call
      assert_raises(Faraday::SSLError) { get.call(min_version: "TLS1_3") }
      assert_equal "/CN=me", get.call(ca_file: nil, verify_mode: OpenSSL::SSL::VERIFY_NONE)
    end
  end

  def test_errors_are_faradays
    silent = serve { |socket, _| socket.read }
    assert_raises(Faraday::TimeoutError) { connection(silent, request: { read_timeout: 0.05 }).get("/") }
    assert_raises(Faraday::ConnectionFailed) { connection(serve { |socket, _| socket.close }).post("/", "x") }
    assert_raises(Faraday::ConnectionFailed) { Faraday.new("http://127.0.0.1:1") { |b| b.adapter :heddle }.get("/") }
  end
end

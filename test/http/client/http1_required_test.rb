# frozen_string_literal: true

# test: each selector

require "test_helper"
require "tmpdir"
require_relative "support/client_case"
require_relative "support/h2_scripted_server"
require_relative "../../support/certificates"

# A server that chooses HTTP/2 and then wants HTTP/1.1 (HTTP_1_1_REQUIRED; RFC 9113, 7).
class ClientHTTP1RequiredTest < ClientCase
  CODE = 13

  # Speaks both versions; each request over HTTP/1.1 is answered.
  class Server < H2ScriptedServer
    private

    def serve(socket, number)
      while (start = socket.read(H2Client::PREFACE.bytesize))
        return serve_frames(socket, number) if start == H2Client::PREFACE

        head = start + socket.gets("\r\n\r\n")
        @requests << Received.new(head, socket.read(head[/^content-length:\s*(\d+)/i, 1].to_i))
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nHTTP/1.1")
      end
    end
  end

  def serve_both(**, &script)
    (@servers ||= []) << Server.new(**, &script)
    @servers.last
  end

  def resetting(**) = serve_both(**) { |peer, _| peer.reset_all(CODE) }

  def client(server, **) = Client.new(server.url, http2: :prior_knowledge, proxy: nil, **)

  def test_a_request_is_sent_over_http1_once
    server = resetting
    http = client(server)

    in_loop { assert_equal "HTTP/1.1", http.post("/order", body: "one").body }
    assert_equal ["POST one"], server.received.map { |request| "#{request.method} #{request.body}" }
  end

  def test_later_requests_begin_with_it
    server = resetting
    http = client(server)
    3.times { assert_equal "HTTP/1.1", http.get("/").body }

    assert_equal 2, server.connections
    assert_equal({ open: 1, idle: 1, requests: 4, opened: 2 },
                 Client.statistics.fetch(server.url).slice(:open, :idle, :requests, :opened))
  end

  def test_the_one_connection_that_is_allowed_becomes_one_of_http1
    http = client(resetting, max_connections: 1, timeout: { pool: LIMIT })

    in_loop { assert_equal ["HTTP/1.1"] * 5, Heddle.map(1..5) { http.get("/").body } }
  end

  def test_goaway_says_it_for_all_requests
    server = serve_both do |peer, _|
      peer.read_request
      peer.send_frame("GOAWAY - 0 #0 ##{CODE}")
      peer.read_to_end
    end

    assert_equal "HTTP/1.1", client(server).post("/", body: "one").body
    assert_equal 2, server.connections
  end

  def test_a_body_that_cannot_be_sent_again_is_an_error_and_not_sent
    server = serve_both do |peer, _|
      peer.send_frame("RST_STREAM - #{peer.read_request.stream} ##{CODE}")
      peer.read_to_end
    end
    body = Enumerator.new { |pieces| pieces << "one" }.lazy

    error = assert_raises(Client::ConnectionLostError) { client(server).post("/", body:) }
    assert_match(/HTTP_1_1_REQUIRED/, error.message)
    refute_kind_of Client::OutcomeUnknownError, error
    assert_empty server.received
  end

  def test_over_tls_http2_is_not_offered_again
    offered = Thread::Queue.new
    authority = TestCertificates.make("test authority", authority: true)
    server = resetting(wrap: tls(TestCertificates.make("localhost", ca: authority), offered))
    Dir.mktmpdir do |folder|
      ca, = TestCertificates.write(folder, "ca", authority)
      http = Client.new("https://localhost:#{server.port}", proxy: nil, tls: { ca: })

      2.times { assert_equal "HTTP/1.1", http.get("/").body }
    end
    assert_equal [%w[h2 http/1.1], %w[http/1.1]], Array.new(offered.size) { offered.pop }
  end

  # Chooses the first protocol that it is offered.
  def tls(certificate, offered)
    context = OpenSSL::SSL::SSLContext.new
    context.add_certificate(*certificate)
    context.alpn_select_cb = lambda do |protocols|
      offered << protocols
      protocols.first
    end
    ->(socket) { OpenSSL::SSL::SSLSocket.new(socket, context).accept }
  end
end

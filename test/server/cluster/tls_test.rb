# frozen_string_literal: true

require_relative "cluster_case"
require "support/certificates"

# Workers that speak TLS: the sockets and the certificates are the master's.
class ClusterTLSTest < Minitest::Test
  include ClusterCase

  def serve_tls
    @certificate, @key = TestCertificates.write(@folder, "site", TestCertificates.make("localhost", "127.0.0.1"))
    command = [*ServedProcess::HEDDLE, "serve", "-w", "2", "-b", "tls://127.0.0.1:0", "--tls-cert", @certificate,
               "--tls-key", @key, "--no-access-log"]
    @served = ServedProcess.new(command, folder: @folder, environment: { "RACK_ENV" => "production" },
                                         address: %r{(https://[^\s/]+:\d+)})
  end

  def get = Net::HTTP.start(served.uri.host, served.uri.port, use_ssl: true, ca_file: @certificate) { _1.get("/") }

  def test_both_workers_serve_also_after_a_reload_and_with_a_new_certificate
    serve_tls
    first = []
    wait_until { (first |= [get["x-worker"]]).size == 2 }
    TestCertificates.write(@folder, "site", TestCertificates.make("new.example", "127.0.0.1"))
    signal("HUP")
    wait_for("reloaded")
    second = []
    wait_until { (second |= [get["x-worker"]]).size == 2 } # which believes in the new certificate only

    assert_empty first & second
  end

  def test_a_kept_connection_is_ended_with_a_word_when_its_worker_ends
    serve_tls
    context = OpenSSL::SSL::SSLContext.new
    context.options &= ~OpenSSL::SSL::OP_IGNORE_UNEXPECTED_EOF
    client = OpenSSL::SSL::SSLSocket.new(TCPSocket.new(served.uri.host, served.uri.port), context).tap(&:connect)
    client.write(format(GET, "/"))
    client.gets("code 1")
    signal("TERM")

    assert_nil Timeout.timeout(PATIENCE) { client.read(1) }
    client.close
  end
end

# frozen_string_literal: true

require_relative "cluster_case"
require "support/certificates"

# Workers that speak TLS: the sockets and the certificates are the master's.
class ClusterTLSTest < Minitest::Test
  include ClusterCase

  def teardown
    # A new master is no child of the test's, and holds what the old one prints to.
    signal("KILL", @master) if @master && alive?(@master)
    super
  end

  def serve_tls(*options)
    @certificate, @key = TestCertificates.write(@folder, "site", TestCertificates.make("localhost", "127.0.0.1"))
    options = ["--tls-cert", @certificate, "--tls-key", @key] if options.empty?
    command = [*ServedProcess::HEDDLE, "serve", "-w", "2", "-b", "tls://127.0.0.1:0", *options, "--no-access-log"]
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
    wait_for("reloaded: 2 workers")
    second = []
    wait_until { (second |= [get["x-worker"]]).size == 2 } # which believes in the new certificate only

    assert_empty first & second
  end

  # Two addresses whose port the system chooses differ in nothing that another process would know them by.
  def test_a_plain_and_an_encrypted_address_of_any_port_are_both_served
    certificate, key = TestCertificates.write(@folder, "site", TestCertificates.make("localhost", "127.0.0.1"))
    command = [*ServedProcess::HEDDLE, "serve", "-w", "2", "-p", "0", "-b", "127.0.0.1", "-b", "tls://127.0.0.1",
               "--tls-cert", certificate, "--tls-key", key, "--no-access-log"]
    @served = ServedProcess.new(command, folder: @folder, environment: { "RACK_ENV" => "production" },
                                         address: %r{(https://[^\s/]+:\d+)})
    plain = URI(served.output[%r{http://[^\s/,]+:\d+}])
    @certificate = certificate

    assert_equal %w[200 200], [get.code, Net::HTTP.get_response(plain).code]
  end

  # Answers of both workers, each over a connection that takes the session up; the session of the last one.
  def resume(session, version, not_these = [])
    context = OpenSSL::SSL::SSLContext.new
    context.max_version = version
    found = []
    wait_until("only #{found} answer") do
      client = OpenSSL::SSL::SSLSocket.new(TCPSocket.new(served.uri.host, served.uri.port), context)
      client.session = session if session
      client.connect
      client.write(format(GET, "/"))
      worker = client.gets("code 1")[/x-worker: (\d+)/, 1]

      assert_predicate client, :session_reused? if session
      session = client.session
      client.close
      (found |= [worker] - not_these).size == 2
    end
    [session, found]
  end

  def test_a_session_is_resumed_on_the_other_worker_and_under_a_new_master
    serve_tls
    versions = [OpenSSL::SSL::TLS1_2_VERSION, OpenSSL::SSL::TLS1_3_VERSION]
    sessions = versions.to_h { |version| [version, resume(nil, version).first] }
    before = resume(nil, nil).last
    sessions.each { |version, session| resume(session, version) }
    signal("USR2")
    wait_for("serves; the old master ends")
    @master = served.output[/new master \(pid (\d+)\)/, 1].to_i
    sessions.each { |version, session| resume(session, version, before) }
  end

  def configure(certificate, key)
    write("config/heddle.rb", "tls_cert #{certificate.inspect}\ntls_key #{key.inspect}\n")
  end

  def subject
    context = OpenSSL::SSL::SSLContext.new
    client = OpenSSL::SSL::SSLSocket.new(TCPSocket.new(served.uri.host, served.uri.port), context).tap(&:connect)
    client.peer_cert.subject.to_s
  ensure
    client&.close
  end

  def test_a_reload_takes_the_files_that_the_configuration_names_now
    other = TestCertificates.write(@folder, "other", TestCertificates.make("other.example"))
    configure(*TestCertificates.write(@folder, "first", TestCertificates.make("first.example")))
    serve_tls("--config", path("config/heddle.rb"))

    assert_equal "/CN=first.example", subject
    configure(path("missing.pem"), other.last)
    signal("HUP")
    wait_for("reload failed: the certificate #{path("missing.pem")} does not exist; keeping the current workers")

    assert_equal "/CN=first.example", subject
    configure(*other)
    signal("HUP")
    wait_for("serve the new code")

    assert_equal "/CN=other.example", subject
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

# frozen_string_literal: true

require_relative "cluster_case"
require "support/certificates"

# The master reads certificates, and every process started later uses those that it read last.
class ClusterCertificatesTest < Minitest::Test
  include ClusterCase

  TRUSTED = { first: TestCertificates.make("first ca", authority: true),
              second: TestCertificates.make("second ca", authority: true) }.freeze
  CLIENTS = TRUSTED.transform_values { |ca| TestCertificates.make("client", ca:) }

  def setup
    super
    write_site("a.example")
    File.write(path("ca.pem"), TRUSTED[:first].first.to_pem)
  end

  def write_site(name, **) = TestCertificates.write(@folder, "site", TestCertificates.make(name, **))

  def serve_tls(parameters = "cert=#{path("site.pem")}&key=#{path("site.key")}", *)
    command = [*ServedProcess::HEDDLE, "serve", "-w", "2", "--reserve-workers", "0", "--control", "unix:control.sock",
               "-b", "tls://127.0.0.1:0?#{parameters}", "--no-access-log", *]
    @served = ServedProcess.new(command, folder: @folder, environment: { "RACK_ENV" => "production" },
                                         address: %r{(https://[^\s/]+:\d+)})
  end

  # @return [Array(String, Integer)] the subject of the certificate, and which worker has shown it; nil: no handshake
  def show(pair = nil)
    certificate, key = pair
    context = OpenSSL::SSL::SSLContext.new
    context.add_certificate(certificate, key) if certificate
    client = OpenSSL::SSL::SSLSocket.new(TCPSocket.new(served.uri.host, served.uri.port), context).tap(&:connect)
    client.write(format(GET, "/"))
    worker = client.gets("code 1")&.slice(/x-worker: (\d+)/, 1) or return
    [client.peer_cert.subject.to_s, Integer(worker)]
  rescue OpenSSL::SSL::SSLError, SystemCallError
    nil
  ensure
    client&.close
  end

  def shown_by_workers(count = 2)
    found = {}
    wait_until("there are not #{count} workers") do
      subject, pid = show
      (found[pid] ||= []) << subject if pid
      found.size >= count
    end
    found
  end

  def test_new_workers_after_a_renewal_and_unusable_files_have_the_renewed_certificate
    serve_tls
    first = shown_by_workers.keys
    write_site("b.example")
    wait_for("reloaded the certificates")
    write("site.pem", "junk")
    wait_for("keeping the old certificates")
    first.each { |pid| Process.kill("KILL", pid) }
    wait_until { first.none? { |pid| alive?(pid) } }
    later = shown_by_workers

    assert_empty first & later.keys
    assert_equal ["/CN=b.example"], later.values.flatten.uniq
    assert_equal 1, said("reloaded the certificates")
    error = assert_raises(Heddle::Server::Control::Client::DeclinedError) do
      client.complete("reload")
    end

    assert_match(/#{path("site.pem")} contains no certificate/, error.message)
    assert_equal ["/CN=b.example"], shown_by_workers.values.flatten.uniq
  end

  def test_a_client_authority_that_was_removed_is_not_trusted_again_by_new_workers
    serve_tls("cert=#{path("site.pem")}&key=#{path("site.key")}&verify=required&ca=#{path("ca.pem")}")

    assert show(CLIENTS[:first])
    write("ca.pem", TRUSTED[:second].first.to_pem)
    wait_for("reloaded the certificates")
    write("ca.pem", "junk")
    wait_for("keeping the old certificates")
    _, pid = wait_until_shown(CLIENTS[:second])
    Process.kill("KILL", pid)
    wait_for("starting another now")
    new = nil
    wait_until { (new = show(CLIENTS[:second])) && new.last != pid }
    wait_until("the first authority is trusted") { Array.new(8) { show(CLIENTS[:first]) }.none? }
  end

  def wait_until_shown(client)
    found = nil
    wait_until { found = show(client) }
    found
  end

  def test_a_failed_reload_takes_back_changed_addresses
    write_config("a.example")
    serve_tls("", "--config", path("config/heddle.rb"))
    before = shown_by_workers.keys
    write_config("b.example")
    write("config.ru", "raise 'no application'")
    signal("HUP")
    wait_for("reload failed")
    before.each { |pid| Process.kill("KILL", pid) }
    wait_until { before.none? { |pid| alive?(pid) } }

    assert_equal ["/CN=a.example"], shown_by_workers.values.flatten.uniq
    TestCertificates.write(@folder, "a.example", TestCertificates.make("c.example"))
    wait_until { show&.first == "/CN=c.example" }
  end

  def write_config(name)
    paths = TestCertificates.write(@folder, name, TestCertificates.make(name))
    write("config/heddle.rb", <<~RUBY)
      tls_cert #{paths.first.inspect}
      tls_key #{paths.last.inspect}
    RUBY
  end

  def test_a_certificate_that_expires_within_14_days_is_reported_and_each_has_a_metric
    write_site("a.example", life: 13 * 86_400)
    serve_tls
    expires = OpenSSL::X509::Certificate.new(File.read(path("site.pem"))).not_after
    wait_for("the certificate #{path("site.pem")} expires at #{expires.utc.strftime("%F %R")} UTC")
    value = metrics["heddle_tls_certificate_expiry_timestamp_seconds"]

    assert_equal({ { "file" => path("site.pem") } => expires.to_i.to_f }, value)
  end
end

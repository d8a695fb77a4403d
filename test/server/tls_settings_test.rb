# frozen_string_literal: true

require "test_helper"
require_relative "tls_helpers"

# Certificates: where they come from, what is wrong with them, and when they change.
class TLSSettingsTest < Minitest::Test
  include TLSHelpers

  def configuration(**) = Heddle::Server::Configuration.new(bind: ["tls://127.0.0.1:0"], **)

  def refused(**options)
    error = assert_raises(Heddle::Server::BootError, Heddle::Server::ConfigurationError) do
      Heddle::Server.new(configuration(**options)).open
    end

    assert_equal error.message, configuration(**options).binds.first.problem if error.is_a?(Heddle::Server::BootError)
    error.message
  end

  def file(name, text) = File.join(@folder, name).tap { |path| File.write(path, text) }

  def test_certificates_of_the_options
    serving(text, bind: ["tls://127.0.0.1:0?min=1.3"], tls_cert: [@certificate], tls_key: [@key]) do
      client = connect_tls

      assert_equal "TLSv1.3", client.ssl_version
      client.close
    end
  end

  def test_a_key_may_be_in_the_file_of_its_certificate
    both = file("both.pem", File.read(@certificate) + File.read(@key))
    serving(text, bind: ["tls://127.0.0.1:0"], tls_cert: [both]) { connect_tls.close }
  end

  def test_several_sites_on_one_address
    other = TestCertificates.write(@folder, "other", TestCertificates.make("other.example"))
    serving(text, bind: ["tls://127.0.0.1:0"], tls_cert: [@certificate, other[0]], tls_key: [@key, other[1]]) do
      connect_tls.close
      client = connect_tls(name: "other.example", ca_file: other[0])

      assert_equal "/CN=other.example", client.peer_cert.subject.to_s
      client.close
    end
  end

  def test_in_development_a_certificate_is_made_up_and_that_is_said
    serving(text, bind: ["tls://127.0.0.1:0"], environment: "development") do
      client = connect_tls(verify_mode: OpenSSL::SSL::VERIFY_NONE)
      client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")

      assert_includes read_answer(client), "hello"
      assert OpenSSL::SSL.verify_certificate_identity(client.peer_cert, "localhost")
      assert OpenSSL::SSL.verify_certificate_identity(client.peer_cert, "127.0.0.1")
      assert OpenSSL::SSL.verify_certificate_identity(client.peer_cert, "app.localhost")
      client.close
    end
    assert_match(/no certificate is configured: development uses a self-signed one/, output.string)
  end

  def test_in_production_none_is_made_up
    assert_match(/a tls bind needs a certificate: give one with --tls-cert and --tls-key/,
                 refused(environment: "production"))
  end

  def test_each_wrong_setting_is_reported_in_one_sentence
    other = TestCertificates.write(@folder, "other", TestCertificates.make("other"))[1]
    encrypted = file("encrypted.key", OpenSSL::PKey.read(File.read(@key)).private_to_pem("AES-256-CBC", "secret"))
    nothing = file("nothing.pem", "nothing")
    {
      [["/nonexistent.pem"], []] => "the certificate /nonexistent.pem does not exist",
      [[@certificate], ["/nonexistent.key"]] => "the key /nonexistent.key does not exist",
      [[@certificate], [other]] => "the key #{other} does not belong to the certificate #{@certificate}: " \
                                   "configure two files that belong together",
      [[@certificate], [encrypted]] => /the key #{encrypted} is encrypted: configure a key without a passphrase/,
      [[@certificate], [nothing]] => /#{nothing} contains no key: it must contain one in PEM/,
      [[@certificate], []] => /#{@certificate} contains no key: .*in another file, name it with --tls-key/,
      [[nothing], [@key]] => /#{nothing} contains no certificate: it must contain one in PEM/,
      [[@folder], [@key]] => "the certificate #{@folder} can't be read: Is a directory",
      [[], [@key]] => /the TLS key #{@key} has no certificate/,
      [[@certificate, @certificate], [@key]] => "there are 2 certificates and 1 keys: give one key for each " \
                                                "certificate, in the same order"
    }.each do |(tls_cert, tls_key), expected|
      assert_operator expected, :===, refused(tls_cert:, tls_key:)
    end
  end

  def test_an_expired_certificate_is_reported
    paths = TestCertificates.write(@folder, "old", TestCertificates.make("localhost", life: -60))
    serving(text, bind: ["tls://127.0.0.1:0?cert=#{paths[0]}&key=#{paths[1]}"]) { nil }

    assert_match(/the certificate #{paths[0]} expired at/, errors.string)
  end

  def test_changed_files_are_read_anew_and_bad_ones_are_not_taken
    require "heddle/net/tls"
    clock = 0.0
    notices = []
    certificates = Heddle::Net::TLS::Certificates.new([Heddle::Net::TLS::KeyFiles.new(@certificate, @key)],
                                                      on_event: ->(name, **) { notices << name })
    certificates.define_singleton_method(:now) { clock }
    shown = -> { certificates.context && certificates.pairs.first.certificate.subject.to_s }

    assert_equal "/CN=localhost", shown.call
    TestCertificates.write(@folder, "site", TestCertificates.make("new.example"))

    assert_equal "/CN=localhost", shown.call # not looked at yet
    clock = now + 10

    assert_equal "/CN=new.example", shown.call
    File.write(@key, "nothing")
    clock += 2

    assert_equal "/CN=new.example", shown.call
    TestCertificates.write(@folder, "site", TestCertificates.make("third.example"))
    clock += 0.5

    assert_equal "/CN=new.example", shown.call
    clock += 2

    assert_equal "/CN=third.example", shown.call
    assert_equal %i[certificates_reloaded certificates_not_reloaded certificates_reloaded], notices
  end

  def test_a_running_server_shows_the_new_certificate
    serving_tls(text) do
      client = connect_tls
      TestCertificates.write(@folder, "site", TestCertificates.make("new.example", "localhost"))
      deadline = now + PATIENCE
      loop do
        other = connect_tls(verify_mode: OpenSSL::SSL::VERIFY_NONE)
        subject = other.peer_cert.subject.to_s
        other.close
        break if subject == "/CN=new.example"

        flunk "it never does" if now > deadline
        sleep 0.01
      end
      client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")

      assert_includes read_answer(client), "hello"
      client.close
    end
    assert_match(/reloaded the certificates/, output.string)
  end
end

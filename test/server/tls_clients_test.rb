# frozen_string_literal: true

require "test_helper"
require_relative "tls_helpers"

# Clients that show certificates of their own, or none.
class TLSClientsTest < Minitest::Test
  include TLSHelpers

  def setup
    super
    @ca = TestCertificates.make("Our Authority", authority: true)
    @ca_path, = TestCertificates.write(@folder, "ca", @ca)
    @ours = TestCertificates.make("client.example", ca: @ca)
    @strangers = TestCertificates.make("client.example", ca: TestCertificates.make("Another", authority: true))
  end

  # Answers with what it is told of its client.
  def app
    lambda do |env|
      peer = env["puma.peercert"]
      told = env.select { |key, _| key.start_with?("SSL_") }
      [200, { "content-type" => "text/plain" }, [[told.to_a.sort, peer && peer.subject.to_s].inspect]]
    end
  end

  def serving_verified(mode, &) = serving_tls(app, "cert=#{@certificate}&key=#{@key}&verify=#{mode}&ca=#{@ca_path}", &)

  # What the client gets, or nothing where it is not let in. In TLS 1.3 it hears of that when it first reads.
  def ask(pair = nil, **settings)
    settings = { cert: pair[0], key: pair[1], **settings } if pair
    client = connect_tls(**settings)
    client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    read_answer(client)
  rescue OpenSSL::SSL::SSLError, SystemCallError
    nil
  ensure
    client&.close
  end

  def test_a_client_without_a_certificate_is_rejected_when_one_is_required
    serving_verified("required") do
      assert_nil ask
      assert_nil ask(max_version: OpenSSL::SSL::TLS1_2_VERSION)
      assert_match(/SUCCESS/, ask(@ours))
      until_statistics { |now| now.slice(:handshakes, :failed_handshakes) == { handshakes: 1, failed_handshakes: 2 } }
    end
  end

  def test_a_client_without_a_certificate_is_accepted_when_it_is_optional
    serving_verified("optional") do
      assert_match(/\[\[\["SSL_CLIENT_VERIFY", "NONE"\]\], nil\]\z/, ask)
      assert_match(/SUCCESS/, ask(@ours))
    end
  end

  def test_a_certificate_that_another_authority_has_signed_is_refused_either_way
    %w[required optional].each do |mode|
      serving_verified(mode) { assert_nil ask(@strangers) }
    end
  end

  def test_an_expired_client_certificate_is_rejected
    serving_verified("required") { assert_nil ask(TestCertificates.make("old", ca: @ca, life: -60)) }
  end

  def test_the_application_gets_the_clients_certificate
    serving_verified("required") do
      answer = ask(@ours)

      assert_includes answer, ["SSL_CLIENT_CERT", @ours.first.to_pem].inspect
      assert_includes answer, %w[SSL_CLIENT_S_DN CN=client.example].inspect
      assert_includes answer, ["SSL_CLIENT_I_DN", "CN=Our Authority"].inspect
      assert_includes answer, ["SSL_CLIENT_M_SERIAL", @ours.first.serial.to_s(16)].inspect
      assert_match(%r{ "/CN=client.example"\]\z}, answer)
    end
  end

  def test_a_session_that_is_resumed_is_still_the_clients_own
    serving_verified("required") do
      settings = { cert: @ours[0], key: @ours[1], max_version: OpenSSL::SSL::TLS1_2_VERSION }
      client = connect_tls(**settings)
      session = client.session
      client.close
      again = connect_tls(session:, **settings)
      again.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")

      assert_match(/client.example/, read_answer(again))
      assert_predicate again, :session_reused?
      again.close
    end
  end

  def test_a_session_of_an_address_that_asks_for_nothing_is_not_resumed_where_one_is_required
    open, asking = nil
    settings = { max_version: OpenSSL::SSL::TLS1_2_VERSION }
    serving_tls(app) { open = connect_tls(**settings).tap(&:close).session }
    serving_verified("required") do
      asking = assert_raises(OpenSSL::SSL::SSLError, SystemCallError) { connect_tls(session: open, **settings) }
    end

    refute_nil asking
  end

  def test_no_certificate_is_passed_on_when_none_is_requested
    serving_tls(app) { assert_match(/\[\[\], nil\]\z/, ask(@ours)) }
  end

  def test_a_header_cannot_pretend_it
    serving_tls(app) do
      client = connect_tls
      client.write("GET / HTTP/1.1\r\nHost: a\r\nSSL_CLIENT_VERIFY: SUCCESS\r\nSSL-Client-Cert: x\r\n\r\n")

      refute_match(/SUCCESS/, read_answer(client))
      client.close
    end
  end

  def test_wrong_settings_are_reported_in_one_sentence
    nothing = File.join(@folder, "nothing.pem").tap { |path| File.write(path, "nothing") }
    {
      "verify=required" => /verify needs a file of CA certificates: name it with ca= in the address/,
      "verify=maybe&ca=#{@ca_path}" => /verify must be none, optional or required, but is "maybe"/,
      "ca=#{@ca_path}" => /ca needs verify=optional or verify=required, but verify is none/,
      "verify=optional&ca=/nonexistent" => %r{\Athe file of CA certificates /nonexistent does not exist},
      "verify=optional&ca=#{nothing}" => /#{nothing} contains no certificate: it must contain the certificates of/
    }.each do |parameters, expected|
      bind = "tls://127.0.0.1:0?cert=#{@certificate}&key=#{@key}&#{parameters}"
      error = assert_raises(Heddle::Server::BootError, Heddle::Server::ConfigurationError) do
        Heddle::Server.new(Heddle::Server::Configuration.new(bind: [bind])).open
      end

      assert_match expected, error.message
    end
  end
end

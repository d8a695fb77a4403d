# frozen_string_literal: true

require "test_helper"
require "heddle/net/tls/client_context"
require "support/certificates"

# Which host names and addresses a certificate is valid for (RFC 9525).
class IdentityTest < Minitest::Test
  CERTIFICATE = TestCertificates.make("subject.example", "a.example", "*.wild.example", "192.0.2.1", "2001:db8::1")[0]

  def for?(host)
    Heddle::Net::TLS::Identity.check(CERTIFICATE, host)
    true
  rescue OpenSSL::SSL::SSLError
    false
  end

  def test_names_match_without_case_and_wildcards_one_whole_label
    hosts = %w[subject.example A.example x.wild.example wild.example x.y.wild.example .wild.example b.example]

    assert_equal %w[subject.example A.example x.wild.example], hosts.select { |host| for?(host) }
  end

  def test_addresses_match_addresses_however_they_are_written
    hosts = %w[192.0.2.1 2001:db8:0:0::1 192.0.2.2 2001:db8::2]

    assert_equal %w[192.0.2.1 2001:db8:0:0::1], hosts.select { |host| for?(host) }
  end
end

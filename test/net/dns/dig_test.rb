# frozen_string_literal: true

require_relative "support/dns_case"

# The server as dig sees it.
class DNSDigTest < Minitest::Test
  include Heddle::TestHelpers::DNSCase

  def test_an_address_over_udp_and_tcp
    serving(->(query) { query.answer("192.0.2.1", ttl: 60) }) do |dns|
      ["+notcp", "+tcp"].each do |transport|
        output = dig(dns, transport, "www.Example.org", "A")

        assert_match(/status: NOERROR/, output)
        assert_match(/^www\.Example\.org\.\s+60\s+IN\s+A\s+192\.0\.2\.1$/, output)
        assert_match(/EDNS: version: 0, flags:; udp: 1232/, output)
      end
    end
  end

  def test_a_long_text_ends_over_tcp
    text = Array.new(3_000) { |index| (97 + (index % 26)).chr }.join
    serving(->(query) { query.answer(text) }) do |dns|
      output = dig(dns, "long.wiki", "TXT")

      assert_match(/Truncated, retrying in TCP mode/, output)
      assert_equal text, output[/^long\.wiki\..*TXT\s+(.*)$/, 1].delete('" ')
    end
  end
end

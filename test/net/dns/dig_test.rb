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

  # kdig +keepopen asks all over one connection of TCP.
  def test_kdig_asks_several_questions_over_one_connection
    need_program("kdig")
    serving(->(query) { query.answer(query.type == :TXT ? query.name : "192.0.2.1") }) do |dns|
      output, status = Open3.capture2e("kdig", "@127.0.0.1", "-p", dns.port.to_s, "+tcp", "+keepopen", "+short",
                                       "one.example", "A", "two.example", "TXT", "three.example", "TXT")

      assert_predicate status, :success?, output
      assert_equal %(192.0.2.1\n"two.example"\n"three.example"\n), output
    end
  end

  def test_kdig_accepts_answers_with_edns_and_without
    need_program("kdig")
    serving(->(query) { query.answer("192.0.2.1") }) do |dns|
      with, without = ["+edns", "+noedns"].map do |edns|
        Open3.capture2e("kdig", "@127.0.0.1", "-p", dns.port.to_s, "+notcp", edns, "www.example.org", "A").first
      end

      assert_match(/EDNS PSEUDOSECTION:\n;; Version: 0; flags: ; UDP size: 1232 B/, with)
      refute_match(/EDNS PSEUDOSECTION/, without)
      [with, without].each do |output|
        assert_match(/status: NOERROR.*192\.0\.2\.1/m, output)
        refute_match(/WARNING|malformed/i, output)
      end
    end
  end
end

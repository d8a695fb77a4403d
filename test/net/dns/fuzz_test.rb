# frozen_string_literal: true

require_relative "support/dns_case"
require_relative "support/zone"
require_relative "support/fuzzed_packets"

# A few thousand packets of the million that test/fuzz/dns sends: each that has a header and is no response gets exactly
# one response, and nothing else gets any.
class DNSFuzzTest < Minitest::Test
  include Heddle::TestHelpers::DNSCase

  def test_each_fuzzed_query_gets_one_response_and_other_input_none
    zone = Heddle::TestHelpers::Zone.new("test")
    serving(->(query) { zone.answer(query) || query.answer("x" * 600, type: :TXT) }) do |dns|
      rcodes = [1, 2, 3].map { |seed| Heddle::TestHelpers::Fuzzing.new(dns.port, seed).run(1_000) }

      assert_equal 3, rcodes.size
      assert_equal %i[BADVERS FORMERR NOERROR NOTIMP REFUSED], rcodes.flat_map(&:keys).uniq.sort
      assert_equal :NOERROR, dns.ask("test", :SOA).rcode
      assert_equal 0, dns.server.statistics[:late]
    end
  end
end

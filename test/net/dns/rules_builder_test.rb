# frozen_string_literal: true

require_relative "support/dns_case"
require "resolv"

# A file of RubyDNS, ported: its words, with Heddle's names around them.
class DNSRulesBuilderTest < Minitest::Test
  include Heddle::TestHelpers::DNSCase

  IN = Resolv::DNS::Resource::IN
  NAME = Resolv::DNS::Name

  def rules(upstream = nil)
    DNS::Rules.new do
      match("Test.Local.", IN::A) { |transaction| transaction.respond!("10.0.0.80", ttl: 7) }
      match(/\A(.+)\.wiki\z/, :TXT) { |transaction, found| transaction.respond!("about #{found[1]}") }
      match("mail.local", [IN::MX, :A]) { |transaction| transaction.respond!(10, NAME.create("mx.local.")) }
      match("gone.local") { |transaction| transaction.fail!(:NXDomain) }
      match("broken.local") { |transaction| transaction.fail!(2) }
      match(->(name, type) { name.start_with?("alias") && type == :A }) do |transaction|
        transaction.respond!(NAME.create("test.local"), resource_class: IN::CNAME)
      end
      otherwise { |transaction| transaction.passthrough!(upstream) } if upstream
    end
  end

  def test_rules_answer_in_their_order
    serving(rules) do |dns|
      answers = { ["TEST.local", :A] => "10.0.0.80", ["ruby.wiki", :TXT] => '"about ruby"',
                  ["mail.local", :MX] => "10 mx.local.", ["alias1.local", :A] => "test.local." }
      answers.each { |question, data| assert_equal data, dns.ask(*question).answers.first.data.to_s }
      assert_equal 7, dns.ask("test.local", :A).answers.first.ttl
      rcodes = %w[gone.local broken.local other.local].map { |name| dns.ask(name, :A).rcode }

      assert_equal %i[NXDOMAIN SERVFAIL REFUSED], rcodes
    end
  end

  def test_otherwise_passes_through
    serving(->(query) { query.answer("192.0.2.1") }) do |back|
      serving(rules(DNS::Client.new("127.0.0.1:#{back.port}"))) do |dns|
        assert_equal "192.0.2.1", dns.ask("other.local", :A).answers.first.data.address
        assert_equal "10.0.0.80", dns.ask("test.local", :A).answers.first.data.address
      end
    end
  end

  def test_a_type_that_is_none_is_named
    error = assert_raises(ArgumentError) { DNS::Rules.new { match("a", :AX) { nil } } }

    assert_match(/"AX" is not a DNS record type/, error.message)
  end
end

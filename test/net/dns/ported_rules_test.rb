# frozen_string_literal: true

require_relative "support/dns_case"
require "resolv"

# Programs of the kind that RubyDNS's guide and examples have, as they look with Heddle's builder.
class DNSPortedRulesTest < Minitest::Test
  include Heddle::TestHelpers::DNSCase

  IN = Resolv::DNS::Resource::IN
  NAME = Resolv::DNS::Name

  # @yieldparam [Running] a server with these rules
  def ruled(rules, **, &) = serving(rules, **, &)

  # A name server behind the one with the rules; it answers with one address.
  def upstream
    serving(->(query) { query.answer("192.0.2.1") }) { |back| yield DNS::Client.new("127.0.0.1:#{back.port}") }
  end

  def data(message) = message.answers.map { |record| [record.name, record.type, record.data.to_s] }

  def test_a_name_is_answered_and_the_others_pass_through
    upstream do |behind|
      rules = DNS::Rules.new do
        match(/test.local/, IN::A) { |transaction| transaction.respond!("10.0.0.80") }
        otherwise { |transaction| transaction.passthrough!(behind) }
      end
      ruled(rules) do |dns|
        assert_equal [["www.Test.local", :A, "10.0.0.80"]], data(dns.ask("www.Test.local", :A))
        assert_equal [["elsewhere.test", :A, "192.0.2.1"]], data(dns.ask("elsewhere.test", :A))
      end
    end
  end

  def test_every_address_is_an_alias
    rules = DNS::Rules.new do
      match(//, IN::A) { |transaction| transaction.respond!(NAME.create("safe.test"), resource_class: IN::CNAME) }
    end
    ruled(rules) { |dns| assert_equal [["a.test", :CNAME, "safe.test."]], data(dns.ask("a.test", :A)) }
  end

  def zone
    DNS::Rules.new do
      match("own.test", IN::SOA) do |transaction|
        transaction.respond!(NAME.create("ns.own.test."), NAME.create("admin.own.test."), 7, 1_200, 900, 3_600, 60)
        transaction.append!(transaction.question, IN::NS, section: :authority)
      end
      match("own.test", IN::NS) do |transaction|
        transaction.respond!(NAME.create("ns.own.test."))
        transaction.append!("NS.own.test.", IN::A, section: :additional)
      end
      match("ns.own.test", IN::A) { |transaction| transaction.respond!("10.0.0.10", ttl: 9) }
      match(/\A([^.]+)\.own\.test\z/, IN::CNAME) do |transaction|
        transaction.respond!(NAME.create("www.own.test"))
        transaction.append!("www.own.test", IN::A)
      end
      match("www.own.test", :A) { |transaction| transaction.respond!("10.0.0.80") }
      match("80.0.0.10.in-addr.arpa", IN::PTR) { |transaction| transaction.respond!(NAME.create("www.own.test.")) }
      otherwise { |transaction| transaction.fail!(:NXDomain) }
    end
  end

  def test_a_zone_by_hand_with_further_records_in_their_sections
    ruled(zone) do |dns|
      soa = dns.ask("own.test", :SOA)

      assert_equal [["own.test", :SOA, "ns.own.test. admin.own.test. 7 1200 900 3600 60"]], data(soa)
      assert_equal([["own.test", :NS]], soa.authorities.map { |one| [one.name, one.type] })
      assert_equal([["ns.own.test", :A, 9]], soa.additionals.map { |one| [one.name, one.type, one.ttl] })
      assert_equal [["bob.own.test", :CNAME, "www.own.test."], ["www.own.test", :A, "10.0.0.80"]],
                   data(dns.ask("bob.own.test", :CNAME))
      assert_equal [["80.0.0.10.in-addr.arpa", :PTR, "www.own.test."]], data(dns.ask("80.0.0.10.in-addr.arpa", :PTR))
      assert_equal :NXDOMAIN, dns.ask("none.own.test", :A).rcode
    end
  end

  def test_a_rule_may_leave_the_query_to_the_next_one
    upstream do |behind|
      rules = DNS::Rules.new do
        match(/(l?o?n?g?)name/) { |transaction, found| found[1].size > 3 ? transaction.fail!(:NXDomain) : next! }
        match(/\A(.+\.)?name\.test\z/) { |transaction| transaction.respond!("10.0.0.1") }
        otherwise { |transaction| transaction.passthrough!(behind) }
      end
      ruled(rules) do |dns|
        assert_equal :NXDOMAIN, dns.ask("longname.test", :A).rcode
        assert_equal "10.0.0.1", dns.ask("name.test", :A).answers.first.data.address
        assert_equal "192.0.2.1", dns.ask("ongname.test", :A).answers.first.data.address
      end
    end
  end

  def test_the_answer_depends_on_the_client
    rules = DNS::Rules.new do
      match(//, IN::A) { |transaction| transaction.respond!(transaction[:peer] == "127.0.0.1" ? "10.0.0.1" : "10.0.0.2") }
      match(//, IN::TXT) { |transaction| transaction.respond!(transaction.options[:remote_address].ip_address) }
      match(//) { |transaction| transaction.respond!("0", (transaction.resource_class == IN::MX).inspect, resource_class: :HINFO) }
    end
    ruled(rules) do |dns|
      assert_equal "10.0.0.1", dns.ask("any.test", :A).answers.first.data.address
      assert_equal "127.0.0.1", dns.ask("any.test", :TXT).answers.first.data.text
      assert_match(/true/, dns.ask("any.test", :MX).answers.first.data.to_s)
      assert_match(/false/, dns.ask("any.test", :TYPE1000).answers.first.data.to_s)
    end
  end

  def test_summaries_in_strings_and_a_count_of_them
    stats = { requested: 0 }
    rules = DNS::Rules.new do
      match(/stats\.wiki/, IN::TXT) { |transaction| transaction.respond!(stats[:requested].to_s) }
      match(/(.+)\.wiki/, IN::TXT) do |transaction, found|
        stats[:requested] += 1
        transaction.respond!("about #{found[1]}", "x" * 300)
      end
    end
    ruled(rules) do |dns|
      text = dns.ask("ruby.wiki", :TXT).answers.first.data

      assert_equal [10, 255, 45], text.strings.map(&:bytesize)
      assert_equal "1", dns.ask("stats.wiki", :TXT).answers.first.data.text
    end
  end

  def test_records_of_resolv_are_added
    rules = DNS::Rules.new do
      match("mail.test") do |transaction|
        transaction.add([IN::MX.new(10, NAME.create("mx.test.")), IN::TXT.new("a", "b")], ttl: 5)
        transaction.add([IN::A.new("10.0.0.3")], name: NAME.create("mx.test."), section: :additional)
      end
      match("wrong.test") { |transaction| transaction.respond!("10.0.0.1", section: :elsewhere) }
    end
    errors = Thread::Queue.new
    ruled(rules, on_error: ->(error, _) { errors << error.message }) do |dns|
      answer = dns.ask("mail.test", :MX)

      assert_equal [["mail.test", :MX, "10 mx.test."], ["mail.test", :TXT, '"a" "b"']], data(answer)
      assert_equal [5, 5], answer.answers.map(&:ttl)
      assert_equal([["mx.test", "10.0.0.3"]], answer.additionals.map { |one| [one.name, one.data.address] })
      assert_equal :SERVFAIL, dns.ask("wrong.test", :A).rcode
      assert_equal ":elsewhere is not a section (known: answer, authority, additional)", errors.pop
    end
  end

  # A server as a subclass, with a method for each query, becomes the server's block.
  def test_a_server_with_one_answer_for_everything
    serving(->(query) { query.fail(:NXDOMAIN) }) { |dns| assert_equal :NXDOMAIN, dns.ask("any.test", :A).rcode }
  end
end
